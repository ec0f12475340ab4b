// Whose the account is: the password, the second factor, and whether the e-mail address is proved.

import { post } from "../api.js";
import { count } from "../format.js";
import { badge, button, card, copyButton, dialog, form, h, mono, replace, toast } from "../kit.js";
import { secretDialog } from "./secret.js";

const TOTP = "/v1/auth/totp";
const CODE = { name: "code", label: "Code", required: true, maxlength: 64, autocomplete: "one-time-code" };

export function securityCard(api, session, signal) {
  const root = h("div", { class: "stack" });
  const show = async () => {
    await session.load();
    replace(root, password(api, session), secondFactor(api, session, show), address(session, signal));
  };
  replace(root, password(api, session), secondFactor(api, session, show), address(session, signal));
  return card("Security", root);
}

const line = (said, ...actions) => h("div", { class: "row between" }, h("div", { class: "row" }, said), h("div", { class: "row" }, actions));

// --- the password -----------------------------------------------------------------------------------------------------

function password(api, session) {
  const change = async () => {
    const reply = await dialog("Change the password", (close) =>
      h(
        "div",
        { class: "stack" },
        h("p", null, "It is good at once, and every other session of the account is signed out. API keys keep working."),
        form(
          [
            { name: "email", label: "E-mail address", type: "email", value: session.account.email, readonly: true, autocomplete: "username" },
            { name: "current_password", label: "Password until now", type: "password", required: true, autocomplete: "current-password" },
            {
              name: "new_password",
              label: "New password",
              type: "password",
              required: true,
              autocomplete: "new-password",
              minlength: 10,
              help: "At least 10 characters.",
            },
          ],
          {
            submit: "Change it",
            cancel: () => close(),
            onsubmit: async ({ current_password, new_password }) =>
              close(await api.post("/v1/auth/password", { current_password, new_password })),
          },
        ),
      ),
    );
    if (reply) toast(`The password is changed. ${count(reply.ended, "other session is", "other sessions are")} signed out.`);
  };
  return line("Password", button("Change the password", change));
}

// --- the second factor ------------------------------------------------------------------------------------------------

function secondFactor(api, session, again) {
  const on = session.account.second_factor;
  const turnOn = async () => {
    const { secret, otpauth_uri } = await api.post(TOTP);
    const confirmed = await dialog("Set up a second factor", (close) =>
      h(
        "div",
        { class: "stack" },
        h("p", null, "Give this secret to an authenticator app: as it is, or as the address below it. It counts once a code of the app is confirmed."),
        h("div", { class: "secret row between" }, mono(secret), copyButton(secret, "Copy the secret")),
        h("div", { class: "secret row between" }, mono(otpauth_uri), copyButton(otpauth_uri, "Copy the address")),
        form([{ ...CODE, inputmode: "numeric", help: "The six digits that the app shows now." }], {
          submit: "Turn it on",
          cancel: () => close(),
          onsubmit: async (values) => close(await api.post(`${TOTP}/confirm`, values)),
        }),
      ),
    );
    if (!confirmed) return;
    await secretDialog("Your recovery codes", confirmed.recovery_codes.join("\n"), {
      copy: "Copy the codes",
      told: "The second factor is on. Each of these is good once in place of a code, if the app is lost. They are shown this once: keep them.",
      done: "I have kept them",
    });
    await again();
  };
  const turnOff = async () => {
    const off = await dialog("Turn the second factor off", (close) =>
      form([{ ...CODE, help: "Of your authenticator app, or a recovery code." }], {
        submit: "Turn it off",
        kind: "danger",
        cancel: () => close(),
        onsubmit: async (body) => (await api.call("DELETE", TOTP, { body }), close(true)),
      }),
    );
    if (!off) return;
    toast("The second factor is off.");
    await again();
  };
  return line(
    ["Second factor", on ? badge("on", "good") : badge("off")],
    on ? button("Turn it off", turnOff, { kind: "danger", "aria-label": "Turn the second factor off" }) : button("Set up a second factor", turnOn),
  );
}

// --- the e-mail address -----------------------------------------------------------------------------------------------

function address(session, signal) {
  const { email, email_verified } = session.account;
  if (email_verified) return line(["E-mail address", badge("confirmed", "good")]);
  const ask = async () => {
    await post("/v1/auth/verify-email/request", { email }, { signal });
    toast("A mail is on its way. Its link works once, for a day.");
  };
  return line(["E-mail address", badge("not confirmed", "warn")], button("Send a mail that confirms it", ask));
}
