// Runs before the first paint, so that a dark page never flashes white. Not a module: modules wait.
try {
  const theme = localStorage.getItem("farthing-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage may be forbidden; the system's own choice holds then
}
