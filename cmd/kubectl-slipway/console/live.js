// Keeps the list and the flow up to date. Without it everything is there after a reload.
"use strict";
const rows = document.getElementById("rows");
const flow = document.getElementById("flow");
const live = document.getElementById("live");
const most = 200;
if (rows && window.EventSource) {
  const source = new EventSource("/stream?" + rows.dataset.query);
  let pending = null;
  const redraw = async () => {
    pending = null;
    if (!flow) return;
    const answer = await fetch("/flow");
    if (answer.ok) flow.innerHTML = await answer.text();
  };
  source.addEventListener("open", () => { live.textContent = "live"; });
  source.addEventListener("error", () => { live.textContent = "not connected"; });
  source.addEventListener("row", (event) => {
    const empty = document.getElementById("empty");
    if (empty) empty.remove();
    rows.insertAdjacentHTML("afterbegin", JSON.parse(event.data));
    rows.firstElementChild.classList.add("new");
    while (rows.children.length > most) rows.lastElementChild.remove();
    if (!pending) pending = setTimeout(redraw, 500);
  });
}
