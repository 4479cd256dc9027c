"""What a loader has cost the daemon, over its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace._core.cost import Cost
from millrace._core.session import Session
from millrace.errors import Error

if TYPE_CHECKING:
    from millrace._data.dataset_argument import Listed


class Costs:
    """Of sessions that are over, as far as they were asked, and of those that are open. Belongs to one thread."""

    def __init__(self) -> None:
        self._over = Cost()
        self._known: dict[int, Cost] = {}  # of open sessions, by identity, as last told
        self._told = False

    def look(self, *sessions: Session | None, timeout: float = 1.0) -> Cost | None:
        """Of all until now; None: no daemon has told any. A session that does not answer is as it was last."""
        for session in sessions:
            if session is None or session.closed:
                continue
            try:
                cost = session.cost(timeout)
            except Error:
                continue
            if cost is not None:
                self._told = True
                self._known[id(session)] = cost
        return sum(self._known.values(), self._over) if self._told else None

    def end(self, *sessions: Session | None) -> None:
        """They are to be closed; asks them once more."""
        self.look(*sessions)
        for session in sessions:
            if session is not None:
                self._over += self._known.pop(id(session), Cost())


class Costed:
    """What every loader has of it."""

    _costs: Costs
    _session: Session | None
    _listed: Listed | None

    @property
    def cost(self) -> Cost | None:
        """What it has cost the daemon, over loops and reconnections; None: it has not connected, or the daemon is older and does not say.

        Asks the daemon. Of one that went away it has what was told last: when this was read, or a loop ended.
        """
        return self._costs.look(*self._sessions(), timeout=5.0)

    def _sessions(self) -> tuple[Session | None, Session | None]:
        """Its own, and that of masks."""
        return self._session, self._listed.beside if self._listed is not None else None
