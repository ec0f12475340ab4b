// Where the links of mails lead: a new password, a confirmed address, an account by invitation. The ticket stands behind the #, which no server and no log
// is sent; it is taken out of the address bar at once, and used when somebody says so, not when a program opens the link.

import { post } from "../api.js";
import { form, h, replace } from "../kit.js";

export const title = "Your account";

const PASSWORD = {
  name: "new_password",
  label: "New password",
  type: "password",
  required: true,
  autocomplete: "new-password",
  minlength: 10,
  help: "At least 10 characters.",
};
const ASK_AGAIN = "/dashboard/sign-in?forgotten";

export function render(root, { session, route, signal }) {
  const given = new URLSearchParams(location.hash.slice(1));
  const ticket = given.get("ticket") ?? "";
  history.replaceState(null, "", location.pathname);
  const show = (heading, ...content) => {
    replace(root, h("section", { class: "card entry-card" }, h("h1", { tabindex: "-1" }, heading), content));
    (root.querySelector("input") ?? root.querySelector("button") ?? root.querySelector("h1")).focus();
  };
  const signIn = () => h("p", null, h("a", { class: "button primary", href: "/dashboard" }, "Go on"));

  const reset = () =>
    show(
      "Choose a new password",
      h("p", null, "It is good at once, and whoever is signed in to the account is signed out."),
      form([PASSWORD], {
        submit: "Set the password",
        onsubmit: async ({ new_password }) => {
          await post("/v1/auth/password-reset/confirm", { token: ticket, new_password }, { signal });
          if (session.account) await session.load();
          show("Your password is changed", h("p", null, "Sign in with it from now on."), signIn());
        },
      }),
      h("p", { class: "note" }, "The link works once, for an hour. ", h("a", { href: ASK_AGAIN }, "Ask for another")),
    );

  const verify = () =>
    show(
      "Confirm your e-mail address",
      h("p", null, "Confirm it if you made the account. If not, close this page: nothing changes."),
      form([], {
        submit: "Confirm",
        onsubmit: async () => {
          const { email } = await post("/v1/auth/verify-email", { token: ticket }, { signal });
          show("Your address is confirmed", h("p", null, email), signIn());
        },
      }),
    );

  const invitation = () =>
    show(
      "Create your account",
      h("p", null, "You are invited."),
      form(
        [
          { name: "full_name", label: "Name", required: true, maxlength: 255, autocomplete: "name" },
          { name: "email", label: "E-mail address", type: "email", required: true, autocomplete: "username" },
          { ...PASSWORD, name: "password", label: "Password" },
        ],
        {
          submit: "Sign up",
          onsubmit: async (values) => {
            await session.signIn({ ...values, invitation: ticket });
            await route.go("/", { replaced: true });
          },
        },
      ),
    );

  const views = { reset, verify, invitation };
  const view = ticket && Object.hasOwn(views, given.get("purpose") ?? "") ? views[given.get("purpose")] : null;
  if (view) return view();
  show(
    "This link is not whole",
    h("p", null, "Open it from the mail once more, or copy all of it."),
    h("p", null, h("a", { href: ASK_AGAIN }, "Ask for a new password")),
  );
}
