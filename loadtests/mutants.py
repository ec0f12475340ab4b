"""Takes the safeguards of durability, and of neighbours, away, one at a time, and tries whether a
test notices.

    python -m loadtests.mutants            every mutant, a line each; ends with 1 when one survives
    python -m loadtests.mutants lease      those whose names contain it

A mutant is an edit of one place of a copy of the checkout, and a quick test that passes without it
and has to fail with it. `tests/test_mutants.py` keeps the list in step with the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TEST_SECONDS_MAX = 900
FAILED = 1  # of pytest: tests ran, and some failed


class Mutant(NamedTuple):
    """before, after: what stands once in the file, and what stands there instead; test: a node of
    pytest.
    """

    name: str
    file: str
    before: str
    after: str
    test: str


_HISTORIES = "tests/control_plane/test_control_plane.py::test_no_promise_is_broken_whatever_fails"
_FIRST, _SOME = f"{_HISTORIES}[first]", f"{_HISTORIES}[some]"
_POWER = (
    "tests/test_power_failure.py::"
    "test_what_was_acknowledged_survives_a_power_failure_anywhere[some]"
)

MUTANTS = (
    Mutant(
        "no token of an attempt",
        "runtime/cluster/supervisor.py",
        "token = os.urandom(8).hex()",
        'token = "the same"',
        "tests/runtime/shard/test_slot_moves_fenced.py::"
        "test_rows_that_were_held_up_before_they_were_written_are_not_written_later[taken again]",
    ),
    Mutant(
        "early answers to a gateway that has gone",
        "runtime/cluster/unix_socket.py",
        "if not writer.is_closing():",
        "if True:",
        "tests/runtime/cluster/test_unix_socket.py::test_nothing_fails_where_the_gateway_has_gone[uvloop]",
    ),
    Mutant(
        "writes handled together share a key",
        "runtime/shard/writes.py",
        "if replayed is not None or call.idempotency_key in in_use:",
        "if replayed is not None:",
        "tests/plugins/memories/test_together.py::test_keys_that_repeat_store_once",
    ),
    Mutant(
        "what failed together stays",
        "runtime/shard/writer.py",
        "outcomes = joint.work(child, items)",
        "outcomes = joint.work(transaction, items)",
        "tests/runtime/shard/test_writer.py::test_tasks_that_fail_together_are_run_each_by_itself",
    ),
    Mutant(
        "an empty object store confirms a lease",
        "storage/replication/shipper.py",
        "elif not own:",
        "elif False:",
        "tests/runtime/shard/test_lease.py::"
        "test_an_object_store_that_went_away_confirms_no_lease_and_keeps_no_write",
    ),
    Mutant(
        "writes go where a disk was mounted",
        "storage/replication/object_store.py",
        "if is_last or folder in self._named or not",
        "if is_last or not",
        "tests/runtime/shard/test_lease.py::"
        "test_an_object_store_that_went_away_confirms_no_lease_and_keeps_no_write",
    ),
    Mutant(
        "a directory that is behind takes the shard",
        "storage/replication/shipper.py",
        "refuse_behind(self._objects, self._store)",
        "pass",
        "tests/storage/replication/test_shipper.py::"
        "test_a_directory_that_is_behind_is_refused_before_it_ends_anybodys_epoch",
    ),
    Mutant(
        "no digest of what moved",
        "runtime/cluster/supervisor.py",
        "if not more and doubts and doubts == before:",
        "if not more and doubts and doubts == before:\n                return",
        "tests/runtime/shard/test_slot_moves_fenced.py::test_a_slot_whose_rows_are_not_all_there_is_not_given_away[lose_a_row-freeze]",
    ),
    Mutant(
        "a stale placement is accepted",
        "runtime/placement/gate.py",
        "if self._states[slot] != _OPEN:\n            raise",
        "if False:\n            raise",
        "tests/runtime/shard/test_slot_moves.py::test_calls_find_their_way_when_nobody_tells_the_shards",
    ),
    Mutant(
        "no lease wait",
        "storage/replication/lease.py",
        "            rest(left)\n",
        "            pass\n",
        "tests/storage/replication/test_lease.py::test_a_restore_waits_for_the_owner_it_takes_the_shard_from",
    ),
    Mutant(
        "a wait that is broken off counts as done",
        "storage/replication/restore.py",
        "token, owner, lease_seconds=left)",
        "token, owner)",
        "tests/storage/replication/test_lease.py::test_a_restore_that_ends_while_it_waits_leaves_the_wait_to_the_next",
    ),
    Mutant(
        "a copied directory does not wait",
        "storage/replication/shipper.py",
        'claim.home == home != ""',
        "True",
        "tests/storage/replication/test_lease.py::test_a_copy_of_a_directory_waits_since_the_other_may_be_served",
    ),
    Mutant(
        "no end of a lease",
        "storage/replication/lease.py",
        "if uptime() < self._until:",
        "if self._until:",
        "tests/runtime/shard/test_lease.py::test_an_owner_that_is_stopped_and_woken_after_a_take_over_answers_nothing",
    ),
    Mutant(
        "a lease that begins when its answer came",
        "storage/replication/lease.py",
        "max(self._until, asked_at + self.seconds)",
        "max(self._until, uptime() + self.seconds)",
        "tests/storage/replication/test_lease.py::test_an_answer_is_good_for_so_long_from_before_it_was_asked_for",
    ),
    Mutant(
        "no look at the lease when a reply is ready",
        "runtime/shard/shard.py",
        "reply = reply if self._durability is None else self._durability.let_out(reply)",
        "pass",
        "tests/runtime/shard/test_lease.py::test_a_reply_that_was_ready_before_the_lease_ended_is_not_given_after",
    ),
    Mutant(
        "an outage outlasted unasked",
        "runtime/shard/durability.py",
        "outlasts=self._may_lose",
        "outlasts=True",
        "tests/runtime/shard/test_lease.py::test_an_owner_that_is_cut_off_answers_for_as_long_as_its_lease_and_again_when_it_is_back",
    ),
    Mutant(
        "acknowledged before it is stored",
        "runtime/shard/durability.py",
        "        if self._replicated:\n            await self._until_stored(sequence)\n",
        "",
        "tests/runtime/shard/test_durability.py::test_a_write_that_cannot_be_stored_is_no_success_and_no_repeat_makes_it_one",
    ),
    Mutant(
        "acknowledged before it is stored, in a cluster",
        "runtime/shard/durability.py",
        "        if self._replicated:\n            await self._until_stored(sequence)\n",
        "",
        _FIRST,
    ),
    Mutant(
        "no freeze before the last changes, in a cluster",
        "runtime/shard/slot_moves.py",
        "            self._gate.freeze(leaving.slots)",
        "            pass",
        _FIRST,
    ),
    Mutant(
        "no lease wait, in a cluster",
        "storage/replication/lease.py",
        "            rest(left)\n",
        "            pass\n",
        _SOME,
    ),
    Mutant(
        "effect before acknowledgement",
        "runtime/shard/job_loop.py",
        "            await self._until_durable(written.sequence)\n",
        "            pass\n",
        "tests/runtime/shard/test_effects.py::test_nobody_is_told_of_what_a_take_over_does_not_find",
    ),
    Mutant(
        "writes behind a failure of the device",
        "runtime/shard/writer.py",
        "            self.check()\n            committed",
        "            committed",
        "tests/runtime/shard/test_writer.py::test_nothing_that_waits_behind_a_failure_of_the_device_is_written",
    ),
    Mutant(
        "no fsync of a commit",
        "storage/store/environment.py",
        "            readonly=readonly,\n        )\n    except lmdb.MemoryError",
        "            readonly=readonly, sync=False,\n        )\n    except lmdb.MemoryError",
        "tests/storage/store/test_disk_faults.py::test_a_disk_that_fails_is_told_from_one_that_is_full[sync-5-DeviceFailed-stored]",
    ),
    Mutant(
        "a disk that loses what was not synced: commits",
        "storage/store/environment.py",
        "            readonly=readonly,\n        )\n    except lmdb.MemoryError",
        "            readonly=readonly, sync=False,\n        )\n    except lmdb.MemoryError",
        _POWER,
    ),
    Mutant(
        "a disk that loses what was not synced: the last step of commits",
        "storage/store/environment.py",
        "            readonly=readonly,\n        )\n    except lmdb.MemoryError",
        "            readonly=readonly, metasync=False,\n        )\n    except lmdb.MemoryError",
        _POWER,
    ),
    Mutant(
        "a disk that loses what was not synced: keys",
        "storage/store/keyring.py",
        "            if sync:\n                os.fsync(self._fd)\n",
        "",
        _POWER,
    ),
    Mutant(
        "a disk that loses what was not synced: objects",
        "storage/replication/object_store.py",
        "        left = left[os.write(descriptor, left) :]\n    os.fsync(descriptor)\n",
        "        left = left[os.write(descriptor, left) :]\n",
        _POWER,
    ),
    Mutant(
        "a disk that loses what was not synced: names of objects",
        "storage/replication/object_store.py",
        "                return False\n            self._sync_names(at)\n            return True\n",
        "                return False\n            return True\n",
        _POWER,
    ),
    Mutant(
        "a disk that loses what was not synced: names of directories",
        "storage/store/directory.py",
        "        try:\n            _sync(path.parent)\n        except OSError:",
        "        try:\n            pass\n        except OSError:",
        _POWER,
    ),
    Mutant(
        "conditional puts are not tried",
        "storage/replication/object_store.py",
        "        if self.put_new(path, content):\n            raise",
        "        if False:\n            raise",
        "tests/storage/replication/test_object_store.py::test_a_store_that_overwrites_against_its_orders_gets_no_shard",
    ),
    Mutant(
        "a segment of another owner counts as stored",
        "storage/replication/shipper.py",
        "            if not stored:\n",
        "            if False:\n",
        "tests/storage/replication/test_shipper.py::test_a_fenced_owner_has_nothing_stored_however_late_it_wakes",
    ),
    Mutant(
        "segments packed by who is fenced",
        "storage/replication/packs.py",
        "if not self._shipper.verify():",
        "if False:",
        "tests/storage/replication/test_packs.py::test_whoever_was_fenced_removes_nothing[directory]",
    ),
    Mutant(
        "names of packed segments count as free",
        "storage/replication/shipper.py",
        "if self._state.number < newest and not self._objects.has(",
        "if False and not self._objects.has(",
        "tests/storage/replication/test_packs.py::test_a_directory_of_before_finds_no_name_of_the_log_free[directory]",
    ),
    Mutant(
        "pages of snapshots are not compared",
        "storage/replication/restore.py",
        "if pages_of(folder / DATA_FILE).image != manifest.image:",
        "if False:",
        "tests/storage/replication/test_changed_pages.py::test_pages_that_do_not_make_the_file_that_was_copied_are_told",
    ),
    Mutant(
        "digests of another snapshot are believed",
        "storage/replication/pages.py",
        "if not is_whole or content[:_SHA256_BYTES] != hashlib.sha256(manifest).digest():",
        "if not is_whole:",
        "tests/storage/replication/test_changed_pages.py::test_without_the_digests_of_the_one_before_it_is_whole",
    ),
    Mutant(
        "another release is let in",
        "runtime/cluster/release.py",
        "    if own != other:\n",
        "    if False:\n",
        "tests/runtime/cluster/test_release.py::test_a_node_of_another_release_gets_no_shard",
    ),
    Mutant(
        "an account in use is evicted by itself",
        "storage/store/resident.py",
        "while self._bytes > self.bytes_max and len(self._accounts) > 1:",
        "while self._bytes > self.bytes_max and self._accounts:",
        "tests/storage/store/test_resident.py::"
        "test_an_account_larger_than_the_bound_is_loaded_once_and_stays_until_another_is_used",
    ),
    Mutant(
        "readers that were killed are not looked for",
        "runtime/shard/shard.py",
        "found = await asyncio.to_thread(self.store.environment.forget_dead_readers)",
        "found = 0",
        "tests/runtime/shard/test_shard.py::test_what_a_killed_reader_held_is_freed_within_seconds",
    ),
    Mutant(
        "what a killed reader held stays",
        "storage/store/environment.py",
        "return self._lmdb.reader_check()",
        "return 0",
        "tests/storage/store/test_readers.py::test_a_killed_reader_shows_until_it_is_forgotten",
    ),
    Mutant(
        "what the copy of another process held stays",
        "storage/store/directory.py",
        "        _forget_dead_readers(source, map_bytes)\n        reason",
        "        reason",
        "tests/storage/store/test_readers.py::"
        "test_the_backup_of_a_store_that_another_process_owns_frees_what_it_held",
    ),
    Mutant(
        "a device that fails is called full",
        "storage/store/directory.py",
        "(number == errno.EIO and not _has_room(path))",
        "number == errno.EIO",
        "tests/storage/store/test_disk_faults.py::"
        "test_a_disk_that_fails_is_told_from_one_that_is_full[pages-5-DeviceFailed-stored]",
    ),
    Mutant(
        "every snapshot is whole",
        "storage/replication/snapshots.py",
        "if known is None or before.depth >= CHANGES_MAX:",
        "if True:",
        "tests/storage/replication/test_changed_pages.py::"
        "test_a_snapshot_stores_what_changed_and_comes_back_whole",
    ),
    Mutant(
        "a map that has to grow",
        "storage/store/directory.py",
        "MAP_BYTES = 1 << 40",
        "MAP_BYTES = 1 << 24",
        "tests/storage/store/test_store.py::test_a_snapshot_that_stays_open_holds_up_no_write",
    ),
    Mutant(
        "a torn segment stops its owner",
        "storage/replication/restore.py",
        "if not (may_be_cut and is_last and is_torn(content)):",
        "if True:",
        "tests/storage/replication/test_torn_segments.py::"
        "test_a_restore_leaves_out_what_was_never_acknowledged",
    ),
    Mutant(
        "what this release stored and is cut short counts as absent",
        "storage/replication/restore.py",
        " and not stores_whole(self._objects, self._state.tail)",
        "",
        "tests/storage/replication/test_torn_segments.py::"
        "test_a_restore_refuses_a_last_segment_that_may_have_been_acknowledged",
    ),
    Mutant(
        "a superseded directory is served without its object store",
        "storage/replication/shipper.py",
        "if store.log.state().superseded:",
        "if False:",
        "tests/storage/replication/test_shipper.py::"
        "test_a_directory_that_finds_out_as_it_is_opened_remembers_it",
    ),
    Mutant(
        "any damaged segment counts as absent",
        "storage/replication/restore.py",
        "if not (may_be_cut and is_last and is_torn(content)):",
        "if False:",
        "tests/storage/replication/test_torn_segments.py::"
        "test_a_segment_that_others_follow_is_never_taken_for_torn",
    ),
    Mutant(
        "heavy reads on the event loop",
        "runtime/api/operation.py",
        "return self.heavy(call) if callable(self.heavy) else self.heavy",
        "return False",
        "tests/runtime/shard/test_heavy_reads.py::"
        "test_a_batch_with_a_heavy_read_answers_the_others_meanwhile",
    ),
    Mutant(
        "heavy reads in the order they came",
        "runtime/turns.py",
        "self._had[account] = max(self._had.get(account, 0.0), self._level) + cost",
        "self._had[account] = 0.0",
        "tests/runtime/shard/test_heavy_reads.py::test_accounts_take_turns",
    ),
    Mutant(
        "jobs in the order they came",
        "runtime/shard/concurrency_groups.py",
        "self._of_account[account] = own  # behind all others",
        "self._of_account[account] = own\n            self._of_account.move_to_end(account, False)",
        "tests/runtime/shard/test_concurrency_groups.py::test_accounts_take_turns_within_a_group",
    ),
    Mutant(
        "wide lists on the event loop",
        "plugins/memories/listing.py",
        "heavy=lambda call: is_wide(call.body.filters),",
        "heavy=False,",
        "tests/runtime/shard/test_heavy_over_http.py::"
        "test_a_neighbour_is_answered_while_wide_requests_wait_and_run",
    ),
    Mutant(
        "readers hear of no commit",
        "runtime/shard/writer.py",
        "        self._on_fed(committed)\n",
        "",
        "tests/runtime/cluster/test_readers.py::"
        "test_what_was_acknowledged_is_found_by_every_process",
    ),
    Mutant(
        "what a silent reader was asked waits for it",
        "runtime/cluster/readers.py",
        "if not reader.is_heard:",
        "if False:",
        "tests/runtime/cluster/test_readers.py::"
        "test_a_reader_that_is_stopped_is_asked_nothing_until_it_goes_on",
    ),
    Mutant(
        "a search goes behind heavy reads",
        "runtime/cluster/readers.py",
        "return self.searching + READER_HEAVY_LOAD_CALLS * (self.under_way > self.searching)",
        "return self.searching",
        "tests/runtime/cluster/test_readers.py::"
        "test_a_search_does_not_go_where_a_heavy_read_is_under_way",
    ),
    Mutant(
        "each long body has a piece of every round",
        "runtime/api/loop_steps.py",
        "await rounds.take(account)",
        "await asyncio.sleep(0)",
        "tests/runtime/api/test_loop_steps.py::"
        "test_however_many_go_through_many_things_one_piece_is_done_a_round",
    ),
    Mutant(
        "a transaction holds itself",
        "storage/store/transaction.py",
        "        self._of = root\n",
        "        self._of = root or self\n",
        "tests/runtime/test_garbage.py::test_no_write_leaves_anything_to_the_collector",
    ),
    Mutant(
        "a refusal holds what it was raised through",
        "runtime/errors.py",
        "self.__traceback__ = self.__context__ = self.__cause__ = None",
        "self.__cause__ = None",
        "tests/runtime/test_garbage.py::test_no_refusal_leaves_anything_to_the_collector",
    ),
    Mutant(
        "lengthy writes never rest",
        "runtime/shard/writes.py",
        "if not cores().are_crowded():",
        "if True:",
        "tests/runtime/shard/test_heavy_reads.py::"
        "test_lengthy_writes_rest_while_several_accounts_ask",
    ),
    Mutant(
        "cells made by the writer",
        "storage/indexes/builder.py",
        'threading.Thread(target=self._run, name="builder", daemon=True).start()',
        "self._run()",
        "tests/storage/indexes/vectors/test_cells.py::test_no_commit_waits_for_cells",
    ),
    Mutant(
        "what a file has of a changed range is believed",
        "storage/indexes/vectors/tenant.py",
        "np.where(are_in(ordinals, changed), 0, sequence)",
        "sequence",
        "tests/storage/indexes/vectors/test_cells.py::"
        "test_a_crash_loses_nothing_whatever_became_of_the_file",
    ),
    Mutant(
        "a change of a record draws no token",
        "storage/indexes/columns.py",
        "        self._rows.put_raw((ordinal,), raw)\n        self.changes.changed(ordinal)\n",
        "        self._rows.put_raw((ordinal,), raw)\n",
        "tests/storage/indexes/test_columns.py::"
        "test_what_changed_since_a_file_was_written_is_read_from_rows_and_nothing_else",
    ),
    Mutant(
        "a file of records of before all was deleted is believed",
        "storage/indexes/change_tokens.py",
        "if known is None or WHOLE not in tokens or known.get(WHOLE) != tokens[WHOLE]:",
        "if known is None:",
        "tests/storage/indexes/test_change_tokens.py::"
        "test_nothing_is_known_of_what_was_deleted_and_came_again",
    ),
    Mutant(
        "postings in memory are believed whatever changed",
        "storage/indexes/lexical/held.py",
        "    if known == tokens:\n        return []\n",
        "    if known is not None:\n        return []\n",
        "tests/storage/indexes/test_lexical.py::"
        "test_each_snapshot_finds_its_own_whatever_is_in_memory",
    ),
    Mutant(
        "a long run of the model has all cores while others ask",
        "runtime/long_work.py",
        "return 0 if self._waiting else max(0, self._free())",
        "return max(0, self._count - self._taken)",
        "tests/runtime/inference/test_turns_of_the_model.py::"
        "test_threads_share_a_long_run_that_is_waited_for_unless_others_ask",
    ),
    Mutant(
        "an account is loaded on the event loop",
        "runtime/shard/prepared_reads.py",
        "if not 0 < held <= LOADED_AT_ONCE_BYTES_MAX:",
        "if False:",
        "tests/runtime/shard/test_loading.py::test_others_are_answered_while_an_account_is_loaded",
    ),
    Mutant(
        "a commit that was not applied is taken into a file",
        "storage/indexes/vectors/tenant.py",
        "if WHOLE not in tokens or not is_applied() or not is_resident():",
        "if WHOLE not in tokens or not is_resident():",
        "tests/storage/indexes/vectors/test_cells.py::"
        "test_a_commit_that_is_not_applied_yet_is_in_no_file",
    ),
    Mutant(
        "a file of vectors is written of a state that misses commits",
        "storage/indexes/vectors/tenant.py",
        "not is_applied() or not is_resident():",
        "not is_applied():",
        "tests/storage/indexes/vectors/test_cells.py::"
        "test_a_file_has_what_was_committed_after_its_state_left_memory",
    ),
    Mutant(
        "what is deleted while vectors are read comes back",
        "storage/indexes/vectors/tenant.py",
        "gone[change.ordinal] = change.sequence",
        "gone.clear()",
        "tests/storage/indexes/vectors/test_loading.py::"
        "test_what_is_deleted_while_the_file_is_read_is_gone_for_good",
    ),
    Mutant(
        "a slot's tokens are copied after its vectors",
        "storage/indexes/change_tokens.py",
        "leads=True,",
        "leads=False,",
        "tests/storage/indexes/vectors/test_loading.py::"
        "test_a_file_that_was_built_while_a_slot_arrived_tells_no_more_than_it_has",
    ),
    Mutant(
        "a file tells of tokens that it may be newer than",
        "storage/indexes/kept.py",
        "for number, token in tokens.items() if later.get(number) == token}",
        "for number, token in tokens.items()}",
        "tests/storage/indexes/vectors/test_loading.py::"
        "test_a_copy_of_before_a_commit_does_not_believe_a_file_that_has_it",
    ),
    Mutant(
        "a replay is answered before searches find the first",
        "runtime/shard/writer.py",
        "if self._fed < sequence:",
        "if self._fed > sequence:",
        "tests/runtime/shard/test_replay_while_committing.py::"
        "test_whoever_repeats_a_write_is_answered_once_searches_find_it",
    ),
    Mutant(
        "a slot that comes back is answered from old memory",
        "runtime/shard/slot_moves.py",
        "self._forget(known, files=False)",
        "known.clear()",
        "tests/runtime/shard/test_slot_moves_memory.py::"
        "test_what_was_in_memory_of_an_earlier_stay_answers_nothing",
    ),
    Mutant(
        "a key that was shredded meanwhile is kept",
        "storage/store/keyring.py",
        'was shredded.")\n            if self._places.get(scope) == number:\n',
        'was shredded.") if False else None\n            if True:\n',
        "tests/storage/store/test_keyring.py::"
        "test_a_key_that_is_shredded_while_it_is_unwrapped_is_not_kept",
    ),
    Mutant(
        "what holds at times ends what holds at others",
        "plugins/ingestion/classification.py",
        "    if fact.beside:\n        return verdict\n",
        "",
        "tests/plugins/ingestion/test_endings.py::test_clauses_end_nothing_else",
    ),
    Mutant(
        "what rests on an expired turn stays",
        "plugins/memories/removal.py",
        "    _remove(ctx, [*over, *((row, ctx.now) for row in further)])",
        "    _remove(ctx, over)",
        "tests/plugins/ingestion/test_derived.py::test_facts_of_a_turn_that_expires_go_with_it",
    ),
    Mutant(
        "a file of records is written of a state that misses commits",
        "storage/indexes/columns.py",
        "not self._applied.is_through(store) or not is_fed():",
        "not self._applied.is_through(store):",
        "tests/storage/indexes/test_columns.py::"
        "test_a_file_has_what_was_committed_after_its_state_left_memory",
    ),
    Mutant(
        "a row that its ordinal has left is found",
        "storage/indexes/vectors/space.py",
        "kept = rows.find(ordinals) == near[places]",
        "kept = rows.find(ordinals) == rows.find(ordinals)",
        "tests/storage/indexes/vectors/test_cells.py::test_cells_forget_and_relearn",
    ),
    Mutant(
        "a file is written after its account was cleared",
        "storage/indexes/vectors/space.py",
        "return self._cleared == cleared",
        "return True",
        "tests/storage/indexes/vectors/test_cells.py::"
        "test_a_file_that_is_being_written_goes_with_what_it_was_of",
    ),
    Mutant(
        "a thread goes on before the others' parts are done",
        "runtime/inference/minilm/kernels.py",
        "    while added(step, COUNTER_PLACES, 0) < parts:",
        "    while added(step, COUNTER_PLACES, 0) < 0:",
        "tests/runtime/inference/minilm/test_kernels.py::"
        "test_threads_share_texts_and_change_nothing[2]",
    ),
    Mutant(
        "signed products take weights as they are stored",
        "runtime/inference/minilm/byte_tiles.py",
        "HIGHEST_BITS = -0x7F7F7F80",
        "HIGHEST_BITS = 0",
        "tests/runtime/inference/minilm/test_kernels.py::"
        "test_each_set_of_instructions_computes_the_same_to_the_bit",
    ),
    Mutant(
        "another release's weights make the same space",
        "runtime/inference/multilingual.py",
        "if digest != SHA256[name]:",
        "if False:",
        "tests/runtime/cli/test_doctor.py::test_another_release_of_the_multilingual_model_is_wrong",
    ),
    Mutant(
        "the service compiles its loops itself, and keeps the compiler's memory",
        "storage/indexes/kernels.py",
        "if not _is_kept(made, signature):",
        "if False:",
        "tests/storage/indexes/test_kernels.py::test_a_process_that_ends_compiles_for_one_that_stays",
    ),
    Mutant(
        "a text that is not all Latin has two vectors, by what is asked of it",
        "runtime/inference/multilingual.py",
        "part is not whole[at] and part.text",
        "False",
        "tests/runtime/inference/test_multilingual.py::"
        "test_a_vector_is_the_same_whatever_else_is_asked_of_its_text",
    ),
    Mutant(
        "words of other languages are compared as if they were English",
        "runtime/inference/multilingual.py",
        "if not all(map(language.readable, texts)):",
        "if False:",
        "tests/runtime/inference/test_multilingual.py::"
        "test_a_question_listens_more_to_what_is_said_in_any_language",
    ),
    Mutant(
        "a text has the core that a neighbour may need",
        "runtime/inference/local_embedder.py",
        "lend(most, spared=1)",
        "lend(most, spared=0)",
        "tests/runtime/inference/test_turns_of_the_model.py::"
        "test_threads_share_a_text_that_is_alone",
    ),
    Mutant(
        "work in a reader process is nobody's",
        "runtime/cluster/reader_process.py",
        "self._frames.send((BEAT, account_work().hand_over()))",
        "self._frames.send((BEAT, {}))",
        "tests/runtime/cluster/test_readers.py::test_what_a_reader_does_is_the_account_s_load",
    ),
    Mutant(
        "a step of a move that comes late is taken",
        "runtime/shard/slot_moves.py",
        "if not is_next:",
        "if False:",
        "tests/runtime/shard/test_slot_moves_fenced.py::test_a_step_that_comes_once_more_at_the_end_changes_nothing[take]",
    ),
    Mutant(
        "a repeated key answers with what is gone",
        "runtime/shard/idempotency.py",
        "if not all(records[each[:3]](ctx, each) for each in row.about):",
        "if False:",
        "tests/plugins/test_replay_of_what_is_gone.py::"
        "test_a_change_of_a_memory_is_not_repeated_once_it_is_deleted",
    ),
    Mutant(
        "conditions that hold for every memory delete all",
        "plugins/memories/operations.py",
        'if holds_whatever(compile_filter(ctx, body.filters, ("body", "filters"))):',
        "if False:",
        "tests/plugins/memories/test_listing.py::test_conditions_that_name_nobody_delete_nothing",
    ),
)


def main() -> int:
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [mutant for mutant in MUTANTS if asked in mutant.name]
    survived = []
    with TemporaryDirectory(prefix="mneme-mutants-") as folder:
        copy = Path(folder) / "checkout"
        tracked = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for name in tracked.splitlines():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        print(f"{'':3}{'mutant':48}{'with it':>10}{'without':>10}  test", flush=True)
        sound: dict[str, bool] = {}  # by test: whether it passes without a mutant
        for number, mutant in enumerate(chosen, 1):
            begun = time.monotonic()
            caught = tried(copy, mutant)
            if mutant.test not in sound:
                sound[mutant.test] = outcome(copy, mutant.test) == 0
            is_sound = sound[mutant.test]
            if not (caught and is_sound):
                survived.append(mutant.name)
            print(
                f"{number:2} {mutant.name:48}{'caught' if caught else 'SURVIVES':>10}"
                f"{'passes' if is_sound else 'FAILS':>10}  {mutant.test.partition('::')[2]} "
                f"({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
    print(f"{len(chosen)} mutants, {len(survived)} survive")
    return bool(survived)


def tried(copy: Path, mutant: Mutant) -> bool:
    """Whether the mutant's test fails on a copy of the checkout that has it."""
    path = copy / mutant.file
    whole = path.read_text()
    path.write_text(whole.replace(mutant.before, mutant.after))
    try:
        return outcome(copy, mutant.test) == FAILED
    finally:
        path.write_text(whole)


def outcome(copy: Path, test: str) -> int:
    """The exit status of pytest; a test that never ends has failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    command += ["--long"] * test.startswith(_HISTORIES)
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=TEST_SECONDS_MAX,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
