"""The transactions in the model of a hold. Each locks the order, reads the rows again, and changes them."""

from checkout.states import Status
from tests.model.protocols.hold_state import IDLE, OPEN, HoldRule, Process, Row, State, move

REPLACED = "A recorded outcome was replaced by another"


def begin_capture(state: State, without: HoldRule | None) -> State:
    """Begin a capture that was waiting for the order's lock, if the order can still be captured."""
    is_late = state.request.heard == "late" if without == HoldRule.CLOCK else state.is_late
    idle = state._replace(request=IDLE)
    if state.has_open_operation or state.order != Status.AUTHORIZED:
        return idle
    if is_late:
        return lapse(idle)
    fault = "A capture began after the deadline" if state.is_late else state.fault
    began = Row("in_flight", "request", sendings=1)
    return state._replace(capture=began, request=Process("call", "capture"), fault=fault)


def cancel(state: State) -> State:
    """Cancel the order for its merchant, unless a card operation is open. A late order lapses instead."""
    can_end = state.order in (Status.CREATED, Status.AUTHORIZED) and not state.has_open_operation
    return _end(state) if can_end else state


def lapse(state: State) -> State:
    """End a held order whose deadline has passed, unless a card operation is open."""
    is_due = state.is_late and state.order == Status.AUTHORIZED and not state.has_open_operation
    return _end(state) if is_due else state


def _end(state: State) -> State:
    """Void the order, and plan the release of its hold."""
    void = Row("planned") if state.order == Status.AUTHORIZED else state.void
    return move(state._replace(void=void), Status.VOIDED)


def begin_fence(state: State, without: HoldRule | None) -> State:
    """Record that the capture failed because it never arrived. Begin the void that proves this."""
    if state.capture.state not in OPEN:
        if without != HoldRule.SECOND_LOOK:
            return state._replace(pump=IDLE)
        state = state._replace(fault=REPLACED)
    failed = state._replace(capture=Row("failed"))
    if without == HoldRule.FENCE:
        return _end(failed)._replace(pump=IDLE)
    return failed._replace(void=Row("in_flight", "pump", sendings=1), pump=Process("call", "void"))


def renew(state: State) -> State:
    """Create a new key for a capture that is missing at the provider.

    If the capture has ended or is not wanted any more, it gets no new key.
    """
    row = state.capture
    if row.state not in OPEN or row.lease != "pump" or not state.wants_capture:
        return record(state._replace(pump=state.pump._replace(heard="unknown")), "pump", None)
    return state._replace(capture=Row("in_flight", key=row.key + 1, is_renewed=True), pump=IDLE)


def record(state: State, name: str, without: HoldRule | None) -> State:
    """Record the result that the process has for its operation, and update the order."""
    process = state.process(name)
    row, state = state.row(process.kind), state.put(**{name: IDLE})
    if process.key != row.key and without != HoldRule.SAME_KEY:
        return state  # the operation under the earlier key has ended
    heard = _judge(row, process, without)
    if without == HoldRule.SECOND_LOOK:
        state = state._replace(fault=REPLACED if row.state not in (*OPEN, heard) else state.fault)
    elif row.state not in OPEN or (heard == "unknown" and row.lease != name):
        return state
    state = state.put(**{process.kind: row._replace(state=_state_after(heard), lease="")})
    return _apply(state, process.kind, heard)


def _judge(row: Row, process: Process, without: HoldRule | None) -> str:
    """Return the outcome to record.

    If another call can still be carried out, a refusal does not decide the outcome.
    """
    is_sent_again = row.sendings > 1 or row.is_renewed
    is_open = process.heard == "failed" and process.kind == "capture" and is_sent_again
    return "unknown" if is_open and without != HoldRule.OTHER_CALLS else process.heard


def _state_after(heard: str) -> str:
    return "failed" if heard == "already captured" else heard


def _apply(state: State, kind: str, heard: str) -> State:
    if kind == "authorize" and heard == "succeeded":
        return move(state, Status.AUTHORIZED)
    if kind == "capture" and heard == "succeeded" and state.order == Status.AUTHORIZED:
        return move(state, Status.CAPTURED)
    if kind == "void" and state.is_fence and heard == "succeeded":
        return move(state, Status.VOIDED)
    if kind == "void" and state.is_fence and heard == "already captured":
        captured = state.capture._replace(state="succeeded")
        return move(state._replace(capture=captured), Status.CAPTURED)
    return state
