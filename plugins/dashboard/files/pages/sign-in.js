// Signing in, signing up, and asking for a link that sets another password.

import { post } from "../api.js";
import { form, h, replace } from "../kit.js";

export const title = "Sign in";

const EMAIL = { name: "email", label: "E-mail address", type: "email", required: true, autocomplete: "username" };
export const CODE = {
  name: "code",
  label: "Code",
  required: true,
  maxlength: 64,
  autocomplete: "one-time-code",
  help: "Of your authenticator app, or a recovery code.",
};
export const PASSWORD = { name: "password", label: "Password", type: "password", required: true };

export async function render(root, { session, route, signal }) {
  const askForCode = (onsubmit) => {
    replace(
      root,
      h(
        "section",
        { class: "card entry-card" },
        h("h1", { tabindex: "-1" }, "Your second factor"),
        form([CODE], { submit: "Sign in", onsubmit }),
      ),
    );
    root.querySelector("input").focus();
  };
  const askForLink = () => {
    replace(
      root,
      h(
        "section",
        { class: "card entry-card" },
        h("h1", { tabindex: "-1" }, "A new password"),
        form([EMAIL], {
          submit: "Send me a link",
          onsubmit: async (values) => {
            await post("/v1/auth/password-reset", values, { signal });
            const sent = "If the address has an account, a mail is on its way. Its link works once, for an hour.";
            replace(root, h("section", { class: "card entry-card" }, h("h1", { tabindex: "-1" }, "Look into your mailbox"), h("p", null, sent)));
            root.querySelector("h1").focus();
          },
        }),
        h("p", { class: "note" }, h("button", { type: "button", class: "as-link", onclick: () => show(false) }, "Sign in")),
      ),
    );
    root.querySelector("input").focus();
  };
  const show = (signingUp) => {
    const next = route.query.get("next") ?? "/";
    const enter = async (values) => {
      const invitation = route.query.get("invitation");
      try {
        await session.signIn(signingUp && invitation ? { ...values, invitation } : values);
      } catch (error) {
        if (values.code || !error.details?.some((detail) => detail.type === "totp_required")) throw error;
        askForCode((code) => enter({ ...values, ...code }));
        return;
      }
      await route.go(next.startsWith("/") && !next.startsWith("//") ? next : "/", { replaced: true });
    };
    const fields = signingUp
      ? [
          { name: "full_name", label: "Name", required: true, maxlength: 255, autocomplete: "name" },
          EMAIL,
          { ...PASSWORD, autocomplete: "new-password", minlength: 10, help: "At least 10 characters." },
        ]
      : [EMAIL, { ...PASSWORD, autocomplete: "current-password" }];
    replace(
      root,
      h(
        "section",
        { class: "card entry-card" },
        h("img", { src: "/dashboard/icon.svg", alt: "", width: 40, height: 40 }),
        h("h1", { tabindex: "-1" }, signingUp ? "Create your account" : "Sign in to Mneme"),
        form(fields, { submit: signingUp ? "Sign up" : "Sign in", onsubmit: enter }),
        h(
          "p",
          { class: "note" },
          signingUp ? "You have an account? " : "No account yet? ",
          h("button", { type: "button", class: "as-link", onclick: () => show(!signingUp) }, signingUp ? "Sign in" : "Sign up"),
        ),
        !signingUp &&
          h("p", { class: "note" }, h("button", { type: "button", class: "as-link", onclick: askForLink }, "Forgot your password?")),
      ),
    );
    root.querySelector("input").focus();
  };
  route.query.has("forgotten") ? askForLink() : show(route.query.has("new"));
}
