// Runs before the first paint, so that a chosen theme does not flash in late. Without a choice the system's counts.
const chosen = localStorage.getItem("mneme.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
