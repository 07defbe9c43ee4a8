// The page's address behind #: a view's path, and behind ? what the view was asked for. Views keep what the reader chose
// there, so that a link or a reload shows the same.

/** {path, asked}: "#/runs/compare?run=a" is ["runs", "compare"] and the parameters run=a. */
export function address() {
  const [path, query = ""] = location.hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  try {
    return { path: path.split("/").map(decodeURIComponent), asked: new URLSearchParams(query) };
  } catch {
    return { path: [""], asked: new URLSearchParams() };
  }
}

/** Writes what the reader chose into the address, without a step in the history; members that are empty are left out. */
export function keep(path, chosen) {
  const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  history.replaceState(null, "", `#/${path}${query && `?${query}`}`);
}
