// Billing: the tier, what another one would cost, and the invoices.

import { date, datetime, money, number } from "../format.js";
import {
  badge,
  button,
  card,
  confirm,
  dialog,
  empty,
  facts,
  h,
  identifier,
  load,
  pageHead,
  pages,
  table,
  time,
  toast,
} from "../kit.js";

export const title = "Billing";

const DAY_MS = 86_400_000;
const PAGE_ITEMS = 25;
const STATUS_TONES = { open: "warn", paid: "good", void: "plain", issued: "plain" };

export async function render(root, { api, signal }) {
  const plan = h("div", { class: "stack" });
  const invoices = pages({
    signal,
    noun: ["invoice", "invoices"],
    fetch: (cursor) => api.get("/v1/billing/invoices", { cursor, limit: PAGE_ITEMS }, { signal }),
    empty: empty("No invoices yet", "One is issued when a month with a fee ends, and when the tier is raised."),
    columns: [
      {
        label: "Number",
        kind: "wide",
        cell: (invoice) => h("button", { type: "button", class: "as-link", onclick: () => openInvoice(api, invoice) }, invoice.number),
      },
      { label: "Issued", cell: ({ issued_at }) => date(issued_at) },
      { label: "Period", cell: (invoice) => period(invoice) },
      { label: "Status", cell: ({ kind, status }) => badge(kind === "credit_note" ? "credit note" : status, STATUS_TONES[status]) },
      { label: "Total", kind: "number", cell: ({ total_cents, currency }) => money(total_cents, currency) },
      { label: "", kind: "actions", cell: (invoice) => pageLink(api, invoice) },
    ],
  });
  root.append(
    pageHead("Billing", { subtitle: "Your tier, and what it costs." }),
    plan,
    h("div", { class: "stack" }, h("h2", null, "Invoices"), invoices),
  );

  const showPlan = () =>
    load(
      plan,
      async () => {
        const [subscription, { items: tiers }, latest] = await Promise.all([
          api.get("/v1/billing/subscription", null, { signal }),
          api.get("/v1/billing/tiers", null, { signal }),
          api.get("/v1/billing/invoices", { limit: 1 }, { signal }),
        ]);
        return { subscription, tiers, currency: latest.items[0]?.currency ?? "usd" };
      },
      ({ subscription, tiers, currency }) => [
        subscriptionCard(subscription, tiers),
        h(
          "div",
          { class: "tiers" },
          tiers.map((tier, rank) => tierCard(tier, rank, { subscription, tiers, currency, change })),
        ),
      ],
      { signal },
    );

  const change = {
    async upgrade(tier, consequence) {
      if (!(await confirm(`Upgrade to ${tier.display_name}?`, consequence, { label: "Upgrade", kind: "primary" }))) return;
      const { invoice, pending_change: waits } = await api.post("/v1/billing/upgrade", { tier: tier.name });
      toast(waits ? `You have ${tier.display_name} as soon as its invoice is paid.` : `You have ${tier.display_name} now.`, { action: { label: "See the invoice", run: () => openInvoice(api, invoice) } });
      invoices.reload();
      await showPlan();
    },
    async downgrade(tier, consequence) {
      if (!(await confirm(`Downgrade to ${tier.display_name}?`, consequence, { label: "Downgrade", kind: "primary" }))) return;
      await api.post("/v1/billing/downgrade", { tier: tier.name });
      toast(`It will be ${tier.display_name} when the month ends.`);
      await showPlan();
    },
    async keep(tier) {
      await api.post("/v1/billing/downgrade", { tier: tier.name });
      toast(`You keep ${tier.display_name}.`);
      await showPlan();
    },
  };
  await showPlan();
}

const said = (value, unit) => (value < 0 ? `unlimited ${unit}` : `${number(value)} ${unit}`);
const perMinute = ({ requests_per_minute: rate }) => (rate ? `${number(rate)} requests a minute` : "no limit a minute");
const period = ({ period_start, period_end }) => `${date(period_start)} – ${date(new Date(Date.parse(period_end) - 1).toISOString())}`;
const pageLink = (api, { html_url, number: name }) =>
  h(
    "a",
    { class: "button small", href: api.href(html_url), target: "_blank", rel: "noopener", "aria-label": `${name} as a page, in a new tab` },
    "To print",
  );

function subscriptionCard({ id, tier, period_end, pending_change, provider, suspension }, tiers) {
  const following = pending_change && tiers.find(({ name }) => name === pending_change.tier);
  return card(
    `You have ${tier.display_name}`,
    suspension && h("p", { role: "alert" }, badge("suspended", "bad"), ` ${suspension.reason}`),
    following &&
      h(
        "p",
        null,
        badge("changes soon", "warn"),
        pending_change.effective_at
          ? ` It becomes ${following.display_name} on ${date(pending_change.effective_at)}. Until then you can keep what you have.`
          : ` It becomes ${following.display_name} as soon as its invoice is paid, within this month.`,
      ),
    facts([
      ["Price", tier.price],
      ["Credits", said(tier.credits, "a month")],
      ["Requests", perMinute(tier)],
      ["This month ends", time(period_end, date(period_end))],
      ["Collected by", provider === "stripe" ? "Stripe" : "the operator of this service"],
      ["Subscription", identifier(id)],
    ]),
  );
}

function tierCard(tier, rank, { subscription, tiers, currency, change }) {
  const current = tiers.findIndex(({ name }) => name === subscription.tier.name);
  const own = rank === current;
  const next = subscription.pending_change?.tier === tier.name;
  const action = own
    ? subscription.pending_change?.effective_at
      ? button("Keep", () => change.keep(tier), { "aria-label": `Keep ${tier.display_name}` })
      : h("p", { class: "note" }, "Your tier")
    : rank > current
      ? tier.price_cents == null
        ? h("p", { class: "note" }, "By agreement: talk to the operator.")
        : button("Upgrade", () => change.upgrade(tier, upgradeConsequence(subscription, tier, currency)), {
            kind: "primary",
            "aria-label": `Upgrade to ${tier.display_name}`,
          })
      : next
        ? h("p", { class: "note" }, "From next month on")
        : button("Downgrade", () => change.downgrade(tier, downgradeConsequence(subscription, tier)), {
            "aria-label": `Downgrade to ${tier.display_name}`,
          });
  return h(
    "section",
    { class: own ? "tier current" : "tier", "aria-label": tier.display_name },
    h("h3", null, tier.display_name),
    h("strong", null, tier.price),
    h("span", { class: "note" }, said(tier.credits, "credits a month")),
    h("span", { class: "note" }, perMinute(tier)),
    action,
  );
}

function upgradeConsequence({ tier: old, period_start, period_end, provider }, tier, currency) {
  const days = Math.round((Date.parse(period_end) - Date.parse(period_start)) / DAY_MS);
  const left = Math.min(days, Math.ceil((Date.parse(period_end) - Date.now()) / DAY_MS));
  const cents = Math.round(((tier.price_cents - (old.price_cents ?? 0)) * left) / days);
  return `It takes effect ${provider === "stripe" ? "as soon as it is paid" : "at once"}. For the ${left} of ${days} days that are left of this month, today included, an invoice of about ${money(cents, currency)} is issued; from ${date(period_end)} on it is ${tier.price}. You then have ${said(tier.credits, "credits a month")} and ${perMinute(tier)}.`;
}

const downgradeConsequence = ({ tier: old, period_end }, tier) =>
  `${old.display_name} stays until ${date(period_end)}, and nothing is paid back. From then on it is ${tier.display_name}, ${tier.price}: ${said(tier.credits, "credits a month")} and ${perMinute(tier)}. Features that only ${old.display_name} has are closed then.`;

// An invoice in a dialog; the page to print opens in a tab of its own.
function openInvoice(
  api,
  { number: name, kind, status, currency, lines, total_cents, credited_cents, issued_at, paid_at, billed_to, payment_url, ...invoice },
) {
  const sum = (label, cents) => [h("span", { class: "note" }, label), h("span", null, money(cents, currency))];
  return dialog(
    `${kind === "credit_note" ? "Credit note" : "Invoice"} ${name}`,
    h(
      "div",
      { class: "stack" },
      facts([
        ["Status", badge(status, STATUS_TONES[status])],
        ["Issued", datetime(issued_at)],
        ["Period", period(invoice)],
        ["Paid", paid_at && datetime(paid_at)],
        ["Billed to", `${billed_to.name}, ${billed_to.email}`],
      ]),
      table(
        [
          { label: "For", kind: "wide", cell: ({ description }) => description },
          { label: "Quantity", kind: "number", cell: ({ quantity }) => quantity.toLocaleString(undefined, { maximumFractionDigits: 4 }) },
          { label: "Price", kind: "number", cell: ({ unit_cents }) => money(unit_cents, currency) },
          { label: "Amount", kind: "number", cell: ({ amount_cents }) => money(amount_cents, currency) },
        ],
        lines,
      ),
      h(
        "div",
        { class: "totals" },
        sum("Total", total_cents),
        credited_cents ? [sum("Credited", -credited_cents), sum("Due", total_cents - credited_cents)] : null,
      ),
      h(
        "div",
        { class: "row end" },
        payment_url && h("a", { class: "button primary", href: payment_url, target: "_blank", rel: "noopener" }, "Pay"),
        pageLink(api, { ...invoice, number: name }),
      ),
    ),
    { wide: true },
  );
}
