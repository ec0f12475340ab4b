// Signing in, signing up as far as the service lets people, and asking for a link: one that sets another password, or an invitation.

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
// Whether signing in with these was refused for want of a code of the second factor.
export const wantsCode = (error, given) => !given.code && !!error.details?.some(({ type }) => type === "totp_required");
export const PASSWORD = { name: "password", label: "Password", type: "password", required: true };
const NEW = [
  { name: "full_name", label: "Name", required: true, maxlength: 255, autocomplete: "name" },
  EMAIL,
  { ...PASSWORD, autocomplete: "new-password", minlength: 10, help: "At least 10 characters." },
];
// Of `auth.registration`: what is asked of an invitation, where one is needed.
const INVITED = {
  mailed: "The code of the mail that you were sent. It is good for the address that it was sent to.",
  invite: "This service takes whom its operator invites. Without an invitation, ask whoever runs it for one.",
};

export async function render(root, { session, route, signal }) {
  const next = route.query.get("next") ?? "/";
  const given = route.query.get("invitation");
  const show = (heading, ...content) => {
    replace(root, h("section", { class: "card entry-card" }, heading, content));
    (root.querySelector("input") ?? root.querySelector("h1")).focus();
  };
  const titled = (text) => h("h1", { tabindex: "-1" }, text);
  const marked = (text) => [h("img", { src: "/dashboard/icon.svg", alt: "", width: 40, height: 40 }), titled(text)];
  const choice = (before, label, chosen) => h("p", { class: "note" }, before, h("button", { type: "button", class: "as-link", onclick: chosen }, label));

  const enter = async (values) => {
    try {
      await session.signIn(values);
    } catch (error) {
      if (!wantsCode(error, values)) throw error;
      show(titled("Your second factor"), form([CODE], { submit: "Sign in", onsubmit: (code) => enter({ ...values, ...code }) }));
      return;
    }
    await route.go(next.startsWith("/") && !next.startsWith("//") ? next : "/", { replaced: true });
  };

  const signIn = () =>
    show(
      marked("Sign in to Mneme"),
      form([EMAIL, { ...PASSWORD, autocomplete: "current-password" }], { submit: "Sign in", onsubmit: enter }),
      session.registration === "closed"
        ? h("p", { class: "note" }, "No account yet? This service takes no new ones; ask whoever runs it.")
        : choice("No account yet? ", "Sign up", signUp),
      choice("", "Forgot your password?", askForPassword),
    );

  const signUp = () => (session.registration === "mailed" && !given ? askForInvitation() : register());

  const register = () => {
    const invited = INVITED[session.registration];
    const invitation = { name: "invitation", label: "Invitation", required: true, maxlength: 255, autocomplete: "off", spellcheck: "false" };
    const fields = invited ? [{ ...invitation, value: given ?? "", help: invited }, ...NEW] : NEW;
    show(
      marked("Create your account"),
      form(fields, { submit: "Sign up", onsubmit: (values) => enter(!invited && given ? { ...values, invitation: given } : values) }),
      choice("You have an account? ", "Sign in", signIn),
    );
  };

  // Whether an address has an account nobody is told here.
  const askForLink = (heading, path, { told, sent, further }) =>
    show(
      titled(heading),
      told && h("p", null, told),
      form([EMAIL], {
        submit: "Send me a link",
        onsubmit: async (values) => {
          await post(path, values, { signal });
          show(titled("Look into your mailbox"), h("p", null, sent), further);
        },
      }),
      further,
      choice("", "Sign in", signIn),
    );

  const askForPassword = () =>
    askForLink("A new password", "/v1/auth/password-reset", {
      sent: "If the address has an account, a mail is on its way. Its link works once, for an hour.",
    });

  const askForInvitation = () =>
    askForLink("Create your account", "/v1/auth/invitation-request", {
      told: "Accounts are made with an invitation, which is mailed to the address that is to have one.",
      sent: "A mail is on its way. What is in it makes the account, for a day; if the address has one already, it sets a new password.",
      further: choice("You have an invitation? ", "Sign up with it", register),
    });

  if (route.query.has("forgotten")) askForPassword();
  else if (!route.query.has("new") && !given) signIn();
  else session.registration === "closed" ? signIn() : signUp();
}
