// Settings: who one is, how it looks, taking everything along, and leaving.

import { datetime, number } from "../format.js";
import {
  badge,
  button,
  card,
  confirm,
  empty,
  facts,
  h,
  identifier,
  pageHead,
  pages,
  table,
  time,
} from "../kit.js";
import { importCard } from "./import.js";
import { secretDialog } from "./secret.js";
import { securityCard } from "./security.js";

export const title = "Settings";

const THEMES = [
  ["", "As the system has it"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export async function render(root, { api, session, signal }) {
  const { account } = session;
  root.append(
    pageHead("Settings"),
    card(
      "Account",
      facts([
        ["Name", account.full_name],
        ["E-mail address", account.email],
        ["Id", identifier(account.user_id)],
        ["Tier", badge(account.tier, "accent")],
        ["Since", time(account.created_at, datetime(account.created_at))],
      ]),
    ),
    securityCard(api, session, signal),
    card("Appearance", themes()),
    card(
      "Take everything along",
      h(
        "p",
        null,
        "One file with everything the account holds: memories and their versions, collections, documents' texts, the graph, webhooks, usage, settings. Any Mneme takes it in again, exactly as it is.",
      ),
      h("div", { class: "row" }, h("a", { class: "button", href: api.href("/v1/account/export"), download: "" }, "Download the export")),
    ),
    importCard(api, signal),
    card(
      "Receipts of erasures",
      h("p", { class: "note" }, "What was erased within the last week, store by store."),
      pages({
        signal,
        noun: ["erasure", "erasures"],
        empty: empty("Nothing was erased lately"),
        fetch: (cursor) => api.get("/v1/account/receipts", { cursor, limit: 20 }, { signal }),
        row: receipt,
      }),
    ),
    danger(api, session),
  );
}

function themes() {
  const choose = (theme) => {
    if (theme) {
      localStorage.setItem("mneme.theme", theme);
      document.documentElement.dataset.theme = theme;
    } else {
      localStorage.removeItem("mneme.theme");
      delete document.documentElement.dataset.theme;
    }
    document.dispatchEvent(new Event("themechange"));
  };
  const chosen = localStorage.getItem("mneme.theme") ?? "";
  return h(
    "fieldset",
    null,
    h("legend", { class: "note" }, "Colours, on this device"),
    THEMES.map(([value, label]) =>
      h(
        "label",
        { class: "check" },
        h("input", { type: "radio", name: "theme", value, checked: value === chosen, onchange: () => choose(value) }),
        h("span", null, label),
      ),
    ),
  );
}

function receipt({ cause, status, created_at, receipts }) {
  return h(
    "article",
    { class: "stack tight" },
    h(
      "p",
      { class: "about note" },
      h("strong", null, cause),
      badge(status, status === "completed" ? "good" : status === "failed" ? "bad" : "warn"),
      time(created_at, datetime(created_at)),
    ),
    receipts.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, "Stores"),
        table(
          [
            { label: "Store", cell: ({ store }) => store },
            { label: "Outcome", cell: ({ outcome, reason }) => [outcome, reason && ` (${reason})`] },
            { label: "Rows", kind: "number", cell: (one) => number(one.count) },
          ],
          receipts,
        ),
      ),
  );
}

function danger(api, session) {
  const erase = async () => {
    const typed = session.account.email;
    if (
      !(await confirm(
        "Erase this account?",
        "Everything in it goes, its API keys stop working at once, and the key that its data is encrypted with is destroyed. Nobody can bring it back. Download the export first if you want to keep anything.",
        { label: "Erase everything", typed },
      ))
    )
      return;
    const { receipt } = await api.delete("/v1/account", { confirm: "erase-account" });
    await secretDialog("The account is erased", receipt, {
      copy: "Copy the receipt",
      told: "This receipt proves it, and shows how far the sweeping of its stores has come. Keep it if you may need it:",
      further: "Programs ask with it at POST /v1/account/receipts, without signing in.",
      done: "Done",
    });
    session.end();
  };
  const made = card(
    "Erase the account",
    h("p", null, "For good, with all that is in it."),
    h("div", { class: "row" }, button("Erase the account", erase, { kind: "danger" })),
  );
  made.classList.add("danger");
  return made;
}
