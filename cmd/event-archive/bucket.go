package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// bucketTries is how often a request to the bucket is made.
	bucketTries = 3
	// bucketTimeout bounds all of one question to the bucket.
	bucketTimeout = 20 * time.Second
	// credentialsAge is how long credentials are used before they are read again: what
	// is mounted may be rotated.
	credentialsAge = time.Minute
)

// Bucket keeps files in a bucket of an S3-compatible server.
type Bucket struct {
	client *minio.Client
	name   string
	// prefix begins the names of all files; empty, or ends with a slash.
	prefix string
}

// NewBucket reaches a bucket by its URL: https://HOST/BUCKET or https://HOST/BUCKET/PREFIX.
// keys is a directory with the files access-key and secret-key, and perhaps ca.crt with
// certificates that are trusted besides the system's.
func NewBucket(address, region, keys string) (*Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("it is no URL of a bucket: write one like https://s3.example.org/slipway/archive, without credentials")
	}
	name, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, errors.New("it names no bucket: write one like https://s3.example.org/slipway")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = bucketTimeout
	if transport.TLSClientConfig, err = trusting(filepath.Join(keys, "ca.crt")); err != nil {
		return nil, err
	}
	options := &minio.Options{
		Creds: credentials.New(&mounted{dir: keys}), Secure: u.Scheme == "https", Region: region, Transport: transport, MaxRetries: bucketTries,
	}
	client, err := minio.New(u.Host, options)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the bucket: %w", err)
	}
	b := &Bucket{client: client, name: name}
	if prefix != "" {
		b.prefix = prefix + "/"
	}
	return b, nil
}

// trusting trusts the certificates of a file too, if it is there.
func trusting(ca string) (*tls.Config, error) {
	text, err := os.ReadFile(ca) //nolint:gosec // the file that the settings name
	if errors.Is(err, fs.ErrNotExist) {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of the bucket's server: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the certificates of the bucket's server: %q holds none", ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// mounted are credentials in files, as a Secret is mounted.
type mounted struct {
	dir  string
	read time.Time
}

// Retrieve implements credentials.Provider.
func (m *mounted) Retrieve() (credentials.Value, error) {
	value := credentials.Value{SignerType: credentials.SignatureV4}
	for name, into := range map[string]*string{"access-key": &value.AccessKeyID, "secret-key": &value.SecretAccessKey} {
		text, err := os.ReadFile(filepath.Join(m.dir, name)) //nolint:gosec // a file of the directory that the settings name
		if err != nil {
			return value, fmt.Errorf("cannot read the bucket's credentials: %w", err)
		}
		if *into = strings.TrimSpace(string(text)); *into == "" {
			return credentials.Value{}, fmt.Errorf("cannot read the bucket's credentials: %q is empty", name)
		}
	}
	m.read = time.Now()
	return value, nil
}

// RetrieveWithCredContext implements credentials.Provider.
func (m *mounted) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return m.Retrieve()
}

// IsExpired implements credentials.Provider.
func (m *mounted) IsExpired() bool { return time.Since(m.read) > credentialsAge }

// Check implements Store.
func (b *Bucket) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	there, err := b.client.BucketExists(ctx, b.name)
	if err != nil {
		return fmt.Errorf("cannot use the bucket %q: %w", b.name, err)
	}
	if !there {
		return fmt.Errorf("cannot use the bucket %q: it does not exist", b.name)
	}
	return nil
}

// Put implements Store.
func (b *Bucket) Put(ctx context.Context, name string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	kind := "text/plain; charset=utf-8"
	if strings.HasSuffix(name, letterSuffix) {
		kind = "application/json"
	}
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(text), int64(len(text)), minio.PutObjectOptions{ContentType: kind})
	if err != nil {
		return fmt.Errorf("cannot write to the bucket: %w", err)
	}
	return nil
}

// Get implements Store.
func (b *Bucket) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	options := minio.GetObjectOptions{}
	if most > 0 {
		if err := options.SetRange(0, most-1); err != nil {
			return nil, fmt.Errorf("cannot read from the bucket: %w", err)
		}
	}
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, options)
	if err != nil {
		return nil, fmt.Errorf("cannot read from the bucket: %w", missing(err))
	}
	defer func() { _ = object.Close() }()
	text, err := readUpTo(object, most)
	if err != nil {
		return nil, fmt.Errorf("cannot read from the bucket: %w", missing(err))
	}
	return text, nil
}

// missing tells what is not there from what cannot be read.
func missing(err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return fs.ErrNotExist
	}
	return err
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, folder string) ([]File, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	prefix := b.prefix + join(folder, "")
	var files []File
	for object := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			return nil, fmt.Errorf("cannot list the bucket: %w", object.Err)
		}
		if name := strings.TrimPrefix(object.Key, b.prefix); !strings.HasSuffix(name, "/") {
			files = append(files, File{Name: name, Size: object.Size, At: object.LastModified})
		}
	}
	sortFiles(files)
	return files, nil
}

// Remove implements Store.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	if err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}); err != nil && !errors.Is(missing(err), fs.ErrNotExist) {
		return fmt.Errorf("cannot remove from the bucket: %w", err)
	}
	return nil
}

// readUpTo reads all, or the beginning.
func readUpTo(from io.Reader, most int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(from, cmp.Or(most, maxRead)))
}
