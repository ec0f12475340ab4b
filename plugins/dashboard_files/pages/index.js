// Every view: its address, its name, and where the menu has it. `under` names the menu's entry of a view that has none itself.

export const GROUPS = [
  { name: "home" },
  { name: "data", title: "What is known" },
  { name: "work", title: "At work" },
  { name: "account", title: "Account" },
];

export const PAGES = [
  { path: "/sign-in", title: "Sign in", load: () => import("./sign-in.js") },
  { path: "/", title: "Overview", group: "home", load: () => import("./overview.js") },
  { path: "/keys", title: "API keys", group: "account", load: () => import("./keys.js") },
];
