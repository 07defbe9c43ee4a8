"""From what tasks wait for to the one that keeps them waiting. Pure: places in, a conclusion out.

Each wait is followed to what it waits for: a tensor to the task that makes it, an empty queue to the steps that fill
it, a lock to the step that holds it, a step that nobody runs to its program. The walk ends at a root: a task that is
not there or does not answer, a node that computes, code of a program, a circle of waits. The root that most waits lead
to is the suspect; roots that explain more count before those that explain less (roots.py).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tenfold_control_api.why.evidence import where
from tenfold_control_api.why.roots import DEEPEST, FUNCTIONS, PARAMETER_SERVERS, WEIGHT, Conclusion, Root, sentence
from tenfold_core.master_jobs import MASTER_JOBS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_control_api.why.evidence import Place
    from tenfold_protos.why_pb2 import ResourceUse, StepWait

def conclude(places: Sequence[Place]) -> Conclusion:
    """The suspect among the tasks. Takes no time to speak of for some hundred tasks."""
    return _Walk(places).conclusion()


class _Walk:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._by_name = {each.name: each for each in places}
        self._waits = [(each, wait) for each in places if each.answer is not None for wait in each.answer.wait]

    def conclusion(self) -> Conclusion:
        roots = self._roots()
        if not roots:
            return self._circle() or self._without_waits()
        votes = Counter(each.key for each in roots)
        best = max(roots, key=lambda each: (WEIGHT[each.kind], votes[each.key], -len(each.path)))
        if WEIGHT[best.kind] <= WEIGHT["resource"]:
            # nobody was seen to lead there, and still it is the better explanation
            silent = [self._lost(each, best.path) for each in self._places if each.silent]
            best = silent[0] if silent else best
        return Conclusion(best.text, best.kind, best.task or None, best.node or None, best.path)

    def _roots(self) -> list[Root]:
        # a full queue is where a pipeline should be, and kernels compute: they count where nothing else waits
        for kinds in ((False,), (True,)):
            found = [
                root
                for place, wait in self._waits
                if (wait.kind in ("room", "kernel")) in kinds
                for root in self._follow(place, wait, (), frozenset())
            ]
            for place in self._places if kinds == (False,) else ():
                found += self._of_waiting_program(place)
            if found:
                return found
        return []

    # -- one wait ----------------------------------------------------------------------------------------------------

    def _follow(
        self, place: Place, wait: StepWait, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]
    ) -> list[Root]:
        """The roots behind a wait; none for one that leads back to itself."""
        key = (place.name, wait.step, wait.kind, wait.node, wait.resource, wait.sender)
        if key in seen or len(path) > DEEPEST:
            return []
        seen, path = seen | {key}, (*path, sentence(place.name, wait))
        if wait.kind in ("tensor", "part"):
            return self._of_sender(wait, path, seen)
        if wait.kind == "kernel":
            text = f"{place.name} computes '{wait.node}' ({wait.op})."
            return [self._function(place, path) or Root("computing", place.name, text, wait.node, path)]
        if wait.kind == "lock":
            return self._of_lock(place, wait, path, seen)
        return self._of_resource(place, wait, path, seen)

    def _of_sender(self, wait: StepWait, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]) -> list[Root]:
        sender = self._by_name.get(wait.sender)
        if sender is None:
            return [Root("silent", wait.sender, f"{wait.sender} is waited for, and it cannot be asked.", path=path)]
        if sender.absent or sender.silent:
            return [self._lost(sender, path)]
        if sender.answer is None:
            text = f"{sender.name} is waited for, and it is {sender.state}."
            return [Root("unbegun", sender.name, text, path=path)]
        return self._of_step(sender, wait.step, path, seen)

    def _of_step(
        self, place: Place, step: int, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]
    ) -> list[Root]:
        """The roots behind what a step waits for at a task; a part that is waited for is asked there itself."""
        assert place.answer is not None
        waits = [each for each in place.answer.wait if each.step == step]
        kernels = [each for each in waits if each.kind not in ("tensor", "part")]
        for those in (kernels, [each for each in waits if each.kind == "tensor"]):
            if those:
                return [root for each in those for root in self._follow(place, each, path, seen)]
        computing = self._computing(place, path)
        if computing is not None:
            return [computing]
        begun = any(each.step == step for each in place.answer.running)
        if any(each.kind == "part" for each in waits):
            return []
        what = "has begun its part of the step and computes" if begun else "has not begun its part of the step"
        return [Root("unbegun", place.name, f"{place.name} {what}.", path=path)]

    def _of_lock(
        self, place: Place, wait: StepWait, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]
    ) -> list[Root]:
        if not wait.holder:
            text = f"The lock '{wait.resource}' at {place.name} is held, and no step under way there holds it."
            return [Root("resource", place.name, text, path=path)]
        holder = f"another step at {place.name} holds the lock '{wait.resource}'"
        found = self._of_whole_step(wait.holder, (*path, holder), seen)
        if not found:
            text = f"Steps wait for each other: the step that holds '{wait.resource}' at {place.name} waits, too."
            return [Root("deadlock", place.name, text, wait.node, path)]
        return found

    def _of_whole_step(self, step: int, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]) -> list[Root]:
        """The roots behind a step, wherever it has parts."""
        waits = [(place, wait) for place, wait in self._waits if wait.step == step]
        kernels = [each for each in waits if each[1].kind not in ("tensor", "part")]
        if kernels or waits:
            return [root for place, wait in kernels or waits for root in self._follow(place, wait, path, seen)]
        for place in self._places:
            if place.answer is not None and any(each.step == step for each in place.answer.running):
                computing = self._computing(place, path)
                text = f"A step of {place.name} has all it needs and has not ended."
                return [computing or Root("unbegun", place.name, text, path=path)]
        return []

    def _of_resource(
        self, place: Place, wait: StepWait, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]
    ) -> list[Root]:
        """Those that would put something in, or for room take something out."""
        assert place.answer is not None
        gives = wait.kind != "room"
        uses = [each for each in place.answer.use if each.resource == wait.resource and each.gives == gives]
        found: list[Root] = []
        masters: dict[str, list[ResourceUse]] = {}
        for each in uses:
            masters.setdefault(each.master, []).append(each)
        for master, those in masters.items():
            steps = {step for each in those for step in each.step} - {wait.step}
            if steps:
                found += [root for step in sorted(steps) for root in self._of_whole_step(step, path, seen)]
            elif all(wait.step not in each.step for each in those):
                doing = "fills" if gives else "empties"
                text = f"{master}, whose program {doing} '{wait.resource}', runs no such step"
                found += self._of_program(master, (*path, text), seen)
        if found:
            return found
        gone = [each for each in self._places if each.absent and f"/job:{PARAMETER_SERVERS}/" not in each.name]
        gone += [each for each in self._places if each.silent]
        if gone:
            return [self._lost(each, path) for each in gone]
        if uses:
            if len(seen) > 1:
                return []
            waiting = "every step that would put in more" if gives else "every step that would take some out"
            text = f"{_upper(sentence(place.name, wait))}, and {waiting} waits itself."
            return [Root("resource", place.name, text, wait.node, path)]
        doing = "puts anything in" if gives else "takes anything out"
        text = f"{_upper(sentence(place.name, wait))}, and no operation of an open session {doing}."
        return [Root("resource", place.name, text, wait.node, path)]

    # -- programs ----------------------------------------------------------------------------------------------------

    def _of_program(self, task: str, path: tuple[str, ...], seen: frozenset[tuple[object, ...]]) -> list[Root]:
        """Why the program of a task runs no step of a kind that others wait for."""
        place = self._by_name.get(task)
        if place is None:
            return [Root("silent", task, f"{task} is waited for, and it cannot be asked.", path=path)]
        if place.absent or place.silent:
            return [self._lost(place, path)]
        mark = ("program", task)
        if place.answer is None or mark in seen:
            return []
        seen = seen | {mark}
        waits = [(at, wait) for at, wait in self._waits if wait.master == task and wait.kind != "part"]
        found = [root for at, wait in waits for root in self._follow(at, wait, path, seen)]
        if found:
            return found
        if waits:
            # all of them lead back to who asks
            return []
        computing = self._computing(place, path)
        if computing is not None:
            return [computing]
        return self._of_waiting_program(place, path) or self._in_its_code(place, path)

    def _of_waiting_program(self, place: Place, path: tuple[str, ...] = ()) -> list[Root]:
        """The roots behind a program that waits for a session, or for the chief to initialise."""
        threads = [each for each in place.threads if each.doing in ("create", "chief")]
        if not threads:
            return []
        if threads[0].doing == "create":
            path = (*path, f"the program of {place.name} waits for its session")
            gone = [each for each in self._places if each.absent or each.silent]
            return [self._lost(each, path) for each in gone]
        path = (*path, f"the program of {place.name} waits for the chief to initialise the variables")
        chief = self._chief(place)
        if chief is None:
            return [Root("chief", place.name, "No chief is there, which would initialise the variables.", path=path)]
        if chief.absent or chief.silent:
            return [self._lost(chief, path)]
        found = [] if chief.answer is None else self._of_program(chief.name, path, frozenset())
        text = f"The chief, {chief.name}, is {chief.state} and has not initialised the variables."
        return found or [Root("chief", chief.name, text, path=path)]

    def _chief(self, waiting: Place) -> Place | None:
        for job in MASTER_JOBS:
            chief = self._by_name.get(f"/job:{job}/replica:0/task:0")
            if chief is not None and chief is not waiting:
                return chief
        return None

    def _in_its_code(self, place: Place, path: tuple[str, ...]) -> list[Root]:
        main = place.main
        if main is None:
            return [Root("program", place.name, f"The program of {place.name} runs no step.", path=path)]
        at = where(main)
        if main.doing == "" and at:
            return [Root("program", place.name, f"The program of {place.name} runs no step: it is {at}.", path=path)]
        return [Root("program", place.name, f"The program of {place.name} runs no step.", path=path)]

    # -- roots -------------------------------------------------------------------------------------------------------

    def _lost(self, place: Place, path: tuple[str, ...]) -> Root:
        if place.absent:
            reason = f": {place.reason}" if place.reason else ""
            return Root("absent", place.name, f"{place.name} is {place.state}{reason}.", path=path)
        text = f"{place.name} does not answer, though it is {place.state}: {place.silence}."
        return Root("silent", place.name, text, path=path)

    def _computing(self, place: Place, path: tuple[str, ...]) -> Root | None:
        """The node that a task computes; of several the program's own functions."""
        found = self._function(place, path)
        for each in place.threads if found is None else ():
            if each.doing == "node":
                text = f"{place.name} computes '{each.node}' ({each.op})."
                return Root("computing", place.name, text, each.node, path)
        return found

    def _function(self, place: Place, path: tuple[str, ...]) -> Root | None:
        """The function of the program that a node computes; of two at once both."""
        functions = [each for each in place.threads if each.doing == "node" and each.op.startswith(FUNCTIONS)]
        if len({each.node for each in functions}) > 1:
            named = " and ".join(f"'{each.node}' {where(each)}".rstrip() for each in functions[:3])
            text = (
                f"Functions of the program at {place.name} stand still together, {named}: each may wait for what the "
                "other holds."
            )
            return Root("deadlock", place.name, text, functions[0].node, path)
        for each in functions:
            at = f", {where(each)}" if where(each) else ""
            text = f"{place.name} computes '{each.node}' ({each.op}){at}."
            return Root("computing", place.name, text, each.node, path)
        return None

    def _circle(self) -> Conclusion | None:
        """Of waits that all lead back to each other; None where there is none, or a task that explains it better."""
        there = [(place, wait) for place, wait in self._waits if wait.kind != "part"]
        if not there or any(each.absent or each.silent for each in self._places):
            return None
        path = tuple(sentence(place.name, wait) for place, wait in there[:DEEPEST])
        first, wait = there[0]
        text = f"Steps wait for each other in a circle: {'; '.join(path[:2])}."
        return Conclusion(text, "deadlock", first.name, wait.node or None, path)

    def _without_waits(self) -> Conclusion:
        """Nothing waits as far as the tasks know."""
        roots = [self._lost(each, ()) for each in self._places if each.silent]
        roots += [self._lost(each, ()) for each in self._places if each.absent]
        if not roots:
            roots = [root for each in self._places if (root := self._computing(each, ())) is not None]
        if not roots:
            programs = [each for each in self._places if each.main is not None and each.main.doing == ""]
            # a parameter server has nothing of its own to do
            programs.sort(key=lambda each: f"/job:{PARAMETER_SERVERS}/" in each.name)
            roots = [root for each in programs for root in self._in_its_code(each, ())]
        if not roots:
            return Conclusion("No step waits, and every task that was asked has answered.", "nothing")
        best = max(roots, key=lambda each: WEIGHT[each.kind])
        return Conclusion(best.text, best.kind, best.task, best.node or None, best.path)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
