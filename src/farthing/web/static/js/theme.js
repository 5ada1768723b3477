// Runs before the first paint, so that a dark page never flashes white. Not a module: modules wait.
try {
  const kept = localStorage.getItem("farthing-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // storage may be forbidden; the system's own choice holds then
}
