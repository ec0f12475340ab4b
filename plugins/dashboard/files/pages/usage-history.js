// What was used, period by period.

const PAGE_MAX = 100;

// All periods since an instant (milliseconds): start of each in milliseconds -> {requests, credits}.
export async function usageSince(api, granularity, since, signal) {
  const found = new Map();
  const asked = { granularity, from: new Date(since).toISOString(), limit: PAGE_MAX };
  let cursor;
  do {
    const page = await api.get("/v1/usage/history", { ...asked, cursor }, { signal });
    for (const item of page.items) found.set(Date.parse(item.period_start), item);
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}
