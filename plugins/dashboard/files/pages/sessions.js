// Sessions: where somebody is signed in to the account, and a way to end each of them.

import { count } from "../format.js";
import { badge, button, confirm, h, link, pageHead, pages, time, toast } from "../kit.js";

export const title = "Sessions";

const SESSIONS = "/v1/auth/sessions";
const PROGRAMS = [
  ["Edge", /Edg\/(\d+)/],
  ["Firefox", /Firefox\/(\d+)/],
  ["Chrome", /Chrome\/(\d+)/],
  ["Safari", /Version\/(\d+).* Safari\//],
];
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"];

export async function render(root, { api, session, signal }) {
  const list = pages({
    signal,
    noun: ["session", "sessions"],
    fetch: (cursor) => api.get(SESSIONS, { cursor, limit: 50 }, { signal }),
    columns: [
      {
        label: "Where",
        kind: "wide",
        cell: (one) =>
          h(
            "div",
            null,
            h("strong", { title: one.agent }, program(one.agent)),
            one.current && [" ", badge("this one", "good")],
            h("div", { class: "note clamped" }, one.agent),
          ),
      },
      { label: "Address", cell: (one) => h("span", { class: one.address.includes(":") ? "" : "nowrap" }, one.address || "–") },
      { label: "Signed in", cell: (one) => time(one.created_at) },
      { label: "Last seen", cell: (one) => time(one.last_seen_at) },
      { label: "Ends by itself", cell: (one) => time(one.expires_at) },
      {
        label: "",
        kind: "actions",
        cell: (one) =>
          button("End", () => end(one), { kind: "danger small", "aria-label": `End the session of ${program(one.agent)}` }),
      },
    ],
  });

  async function end(one) {
    if (one.current) {
      if (await confirm("Sign out here?", "This is the session you are in.", { label: "Sign out" })) await session.signOut();
      return;
    }
    if (!(await confirm("End this session?", "Whoever is signed in there is signed out at the next request.", { label: "End it" }))) return;
    await api.delete(`${SESSIONS}/${one.id}`);
    toast("The session is ended.");
    list.reload();
  }

  const endOthers = async () => {
    const text = "Every session but this one is signed out at its next request. API keys keep working.";
    if (!(await confirm("End all other sessions?", text, { label: "End them" }))) return;
    const { ended } = await api.delete(SESSIONS);
    toast(`${count(ended, "session is", "sessions are")} ended.`);
    list.reload();
  };

  root.append(
    pageHead("Sessions", {
      subtitle: [
        "Everywhere that somebody is signed in to this account. End what you do not recognise, and ",
        link("/settings", "change the password"),
        " then.",
      ],
      actions: [button("End all others", endOthers, { kind: "danger" })],
    }),
    list,
  );
}

// "Firefox 140 on Linux", as far as a User-Agent says so; else its first word.
function program(agent) {
  const [name, expression] = PROGRAMS.find(([, expression]) => expression.test(agent)) ?? [];
  const system = SYSTEMS.find((one) => agent.includes(one));
  const what = name ? `${name} ${expression.exec(agent)[1]}` : agent.split(/[\s/]/)[0] || "Unknown program";
  return system ? `${what} on ${system.replace("Mac OS X", "macOS")}` : what;
}
