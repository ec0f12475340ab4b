"""The dashboard: pages for people who would rather look than read.

Owns the addresses below /dashboard: the files of `files/`, a session kept in a cookie, and a
passage to the public API. It stores nothing and can do nothing that the API would not do for the
account that is signed in.

    GET    /dashboard, /dashboard/...  the page; what is no file is one of its views
    GET    /dashboard/session          who is signed in, the session's anti-forgery value, and who
                                       may sign up (`auth.registration`)
    POST   /dashboard/session          sign in with e-mail and password; with full_name: sign up;
                                       the session whose anti-forgery value comes along is ended
    DELETE /dashboard/session          sign out; the access token is revoked
    any    /dashboard/api/v1/...       the same below /v1, as the account that is signed in

Invariants:
- The access token is in an HttpOnly cookie and in no body. Operations that answer with a token are
  not reached from here.
- Whatever changes something needs the session's anti-forgery value in X-Mneme-CSRF, which only a
  script of this very site can have read. It is a keyed digest of the token: bound to the session,
  and nothing to remember. Reading needs none, but where one comes along it has to be the session's:
  so no page shows one account's data under the name of another, whoever signed in in the tab beside
  it. Signing in has no session yet, so it has to come as JSON, which no
  foreign page can send; and nothing is done for a request that the browser says came from another
  site.
- What the API answers may hold what strangers wrote. Here it would have the page's origin, so it is
  always sandboxed.
"""

from __future__ import annotations

from plugins.dashboard.site import Dashboard, claims
from runtime.api.mount import Mount
from runtime.api.plugin import Plugin

__all__ = ["plugin"]

plugin = Plugin(name="dashboard", mounts=(Mount("dashboard", claims, Dashboard),))
