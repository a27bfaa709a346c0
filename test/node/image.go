package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// Image is a container image with one static program in it.
type Image struct {
	// Name is the image's name with its tag, Binary the file of the program.
	Name, Binary string
}

// epoch is the date of everything in an image: the same programs give the same image.
var epoch = time.Unix(0, 0).UTC()

// config is what an image says about itself.
type config struct {
	Architecture string        `json:"architecture"`
	OS           string        `json:"os"`
	Created      time.Time     `json:"created"`
	Config       runConfig     `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
	History      []historyItem `json:"history"`
}

type runConfig struct {
	Entrypoint []string
	User       string
	WorkingDir string
	Env        []string
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type historyItem struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// entry is one image in the archive's table of contents.
type entry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// WriteArchive writes the images as "docker save" would, so that any container engine
// can load them.
func WriteArchive(w io.Writer, images ...Image) error {
	archive := tar.NewWriter(w)
	contents := make([]entry, 0, len(images))
	for _, image := range images {
		e, err := writeImage(archive, image)
		if err != nil {
			return fmt.Errorf("cannot make image %q: %w", image.Name, err)
		}
		contents = append(contents, e)
	}
	table, err := json.Marshal(contents)
	if err != nil {
		return err
	}
	if err := writeFile(archive, "manifest.json", table); err != nil {
		return err
	}
	return archive.Close()
}

func writeImage(archive *tar.Writer, image Image) (entry, error) {
	name, _, _ := strings.Cut(path.Base(image.Name), ":")
	program := path.Join("ko-app", name)
	// Read twice: an entry's name and size come before its content.
	sum, size := sha256.New(), counter(0)
	if err := writeLayer(io.MultiWriter(sum, &size), image.Binary, program); err != nil {
		return entry{}, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	layer := digest + "/layer.tar"
	if err := archive.WriteHeader(header(layer, 0o644, int64(size))); err != nil {
		return entry{}, err
	}
	if err := writeLayer(archive, image.Binary, program); err != nil {
		return entry{}, err
	}
	about, err := json.Marshal(config{
		Architecture: runtime.GOARCH, OS: "linux", Created: epoch,
		Config: runConfig{
			Entrypoint: []string{"/" + program}, User: "65532", WorkingDir: "/",
			Env: []string{"PATH=/ko-app", "KO_DATA_PATH=/var/run/ko"},
		},
		RootFS:  rootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest}},
		History: []historyItem{{Created: epoch, CreatedBy: "slipway test/node"}},
	})
	if err != nil {
		return entry{}, err
	}
	aboutSum := sha256.Sum256(about)
	aboutName := hex.EncodeToString(aboutSum[:]) + ".json"
	return entry{Config: aboutName, RepoTags: []string{image.Name}, Layers: []string{layer}}, writeFile(archive, aboutName, about)
}

// writeLayer writes the file system of an image: users, a folder for temporary files,
// and the program.
func writeLayer(w io.Writer, binary, program string) error {
	layer := tar.NewWriter(w)
	for _, dir := range []string{"etc/", "tmp/", "var/", "var/run/", "var/run/ko/", "ko-app/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		h := header(dir, mode, 0)
		h.Typeflag = tar.TypeDir
		if err := layer.WriteHeader(h); err != nil {
			return err
		}
	}
	if err := writeFile(layer, "etc/passwd", []byte("root:x:0:0:root:/:/none\nnonroot:x:65532:65532:nonroot:/tmp:/none\n")); err != nil {
		return err
	}
	if err := writeFile(layer, "etc/group", []byte("root:x:0:\nnonroot:x:65532:\n")); err != nil {
		return err
	}
	file, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := layer.WriteHeader(header(program, 0o755, info.Size())); err != nil {
		return err
	}
	if _, err := io.Copy(layer, file); err != nil {
		return err
	}
	return layer.Close()
}

func writeFile(w *tar.Writer, name string, content []byte) error {
	if err := w.WriteHeader(header(name, 0o644, int64(len(content)))); err != nil {
		return err
	}
	_, err := io.Copy(w, bytes.NewReader(content))
	return err
}

func header(name string, mode, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size, ModTime: epoch, Format: tar.FormatPAX}
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
