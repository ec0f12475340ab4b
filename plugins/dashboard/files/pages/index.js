// Every view: its address, its name, and where the menu has it. `under` names the menu's entry of a view that has none itself; what is
// `open` needs nobody signed in.

export const GROUPS = [
  { name: "home" },
  { name: "data", title: "What is known" },
  { name: "work", title: "At work" },
  { name: "account", title: "Account" },
];

export const PAGES = [
  { path: "/sign-in", title: "Sign in", load: () => import("./sign-in.js") },
  { path: "/", title: "Overview", group: "home", load: () => import("./overview.js") },
  { path: "/memories", title: "Memories", group: "data", load: () => import("./memories.js") },
  { path: "/memories/:id", title: "Memory", under: "/memories", load: () => import("./memory.js") },
  { path: "/playground", title: "Playground", group: "data", load: () => import("./playground.js") },
  { path: "/collections", title: "Collections", group: "data", load: () => import("./collections.js") },
  { path: "/documents", title: "Documents", group: "data", load: () => import("./documents.js") },
  { path: "/documents/:id", title: "Document", under: "/documents", load: () => import("./document.js") },
  { path: "/graph", title: "Knowledge graph", group: "data", load: () => import("./graph.js") },
  { path: "/jobs", title: "Jobs", group: "work", load: () => import("./jobs.js") },
  { path: "/webhooks", title: "Webhooks", group: "work", load: () => import("./webhooks.js") },
  { path: "/webhooks/:id", title: "Webhook", under: "/webhooks", load: () => import("./webhook.js") },
  { path: "/policies", title: "Outcome policies", group: "work", load: () => import("./policies.js") },
  { path: "/policy", title: "Outcome policy", under: "/policies", load: () => import("./policy.js") },
  { path: "/usage", title: "Usage", group: "account", load: () => import("./usage.js") },
  { path: "/latency", title: "Latency", group: "account", load: () => import("./latency.js") },
  { path: "/billing", title: "Billing", group: "account", load: () => import("./billing.js") },
  { path: "/keys", title: "API keys", group: "account", load: () => import("./keys.js") },
  { path: "/sessions", title: "Sessions", group: "account", load: () => import("./sessions.js") },
  { path: "/settings", title: "Settings", group: "account", load: () => import("./settings.js") },
  { path: "/mailed", title: "Your account", open: true, load: () => import("./mailed.js") },
  { path: "/operator", title: "Cluster", open: true, load: () => import("./cluster.js") },
];
