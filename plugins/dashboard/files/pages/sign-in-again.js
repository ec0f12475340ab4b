// Signing in once more, over what is open: a session has ended, or began too long ago for what is asked. What was typed stays, and what was
// pressed goes on.

import { button, dialog, form, h, replace } from "../kit.js";
import { CODE, PASSWORD, wantsCode } from "./sign-in.js";

const WORDS = {
  ended: {
    title: "Sign in to Mneme",
    text: "Your session is over. Sign in again to go on; what is open here stays as it is. In another tab will do as well.",
    submit: "Sign in",
    cancel: "Leave",
  },
  stale: {
    title: "Is it you?",
    text: "This needs a login of a moment ago. Give your password once more, and it goes on.",
    submit: "Go on",
    cancel: "Cancel",
  },
};

// why: "ended" or "stale". -> promise of whether somebody signed in, to the account that this page is of.
export async function signInAgain(session, why) {
  const { title, text, submit, cancel } = WORDS[why];
  const { email } = session.account;
  const over = new AbortController();
  const signedIn = await dialog(
    title,
    (close) => {
      const enter = async (credentials) => {
        try {
          await session.signIn(credentials);
        } catch (error) {
          if (!wantsCode(error, credentials)) throw error;
          askForCode((code) => enter({ ...credentials, ...code }));
          return;
        }
        close(true);
      };
      const asked = form(
        [
          { name: "email", label: "E-mail address", type: "email", value: email, readonly: true, autocomplete: "username" },
          { ...PASSWORD, autocomplete: "current-password", autofocus: true },
        ],
        { submit, onsubmit: ({ password }) => enter({ email, password }) },
      );
      const root = h("div", { class: "stack" }, h("p", null, text), asked, button(cancel, () => close(false), { kind: "quiet" }));
      const askForCode = (onsubmit) => {
        const made = form([CODE], { submit, onsubmit });
        replace(root, h("p", null, "The code of your second factor as well."), made, root.lastChild);
        made.querySelector("input").focus();
      };
      const look = async () => (await session.seen().catch(() => false)) && close(true);
      if (why === "ended") addEventListener("focus", look, { signal: over.signal });
      return root;
    },
    { stays: true },
  );
  over.abort();
  return signedIn === true;
}
