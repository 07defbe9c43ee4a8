"""12. Programs that people train: time, memory, processor time and page faults of a step, first steps, loss curves.

    python benchmarks/programs.py [--only cnn,mlp] [--mode single,busy,cluster,first,agree] [--quick] [--seconds S]
    python benchmarks/programs.py --report benchmarks/reports --page
    python benchmarks/programs.py --profile cnn          # where a step's time goes on Tenfold

The programs are in models/. `single`: one task in process. `busy`: the same again with two busy neighbours.
`cluster`: 1 or 2 parameter servers and two workers, MonitoredTrainingSession. `first`: the
first step, with cold caches too. Every case has processes of its own; a curve of losses is compared before anything is
timed. Where torch is installed (`make peers-env`) a program's counterpart there is measured beside it, eager and
compiled, and each row says which share of the floor (harness/floor.py) is reached. `agree`, which no other mode
includes: nothing but those curves, compiled before the first step and unfused, on one task and over two.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Subject, Topology
from models import (
    clicks,
    images,
    in_torch,
    interest,
    loops,
    mlp,
    pictures,
    policy,
    recurrent,
    same,
    seq2seq,
    texts,
    transformer,
    word2vec,
)
from models.in_torch import clicks as torch_clicks
from models.in_torch import images as torch_images
from models.in_torch import mlp as torch_mlp
from models.in_torch import pictures as torch_pictures
from models.in_torch import policy as torch_policy
from models.in_torch import recurrent as torch_recurrent
from models.in_torch import texts as torch_texts
from models.in_torch import transformer as torch_transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from models import Model

MODES = ("single", "busy", "cluster", "first")
#: The losses alone.
AGREE = "agree"
#: Not pinned: a real program has the machine.
TASK = Topology(servers=(), clients=("worker:0",), pinned=False)
ONE_PS = Topology(servers=("ps:0",), clients=("worker:0", "worker:1"), pinned=False)
OVER_TASKS = Topology(servers=("ps:0",), clients=("worker:0",), pinned=False)
TWO_PS = Topology(servers=("ps:0", "ps:1"), clients=("worker:0", "worker:1"), pinned=False)
#: Losses that are compared, and page faults that a step may take.
CURVE, FAULTS = 100, 20.0
#: Steps after which a program is in its steady state again.
RUN_IN = 3
#: A session without a server, one thread a pool.
DIRECT_ONE_THREAD = replace(harness.TENSORFLOW_DIRECT_TUNED, name="tensorflow direct one thread", executor="")
SIDES = (
    harness.TENFOLD,
    harness.TENFOLD_UNFUSED,
    harness.TENFOLD_COLD,
    harness.TENFOLD_COMPILED,
    harness.TENSORFLOW,
    harness.TENSORFLOW_TUNED,
    harness.TENSORFLOW_DIRECT,
    DIRECT_ONE_THREAD,
    harness.TORCH,
    harness.TORCH_COMPILED,
)
#: How many times as fast as torch's sides it has to be.
TORCH_DEMANDS = {"torch": 1.0, "torch compiled": 0.9}
CLUSTER_SIDES = ("tenfold", "tensorflow", "tensorflow tuned")
SINGLE_SIDES = tuple(side.name for side in SIDES if side is not harness.TENFOLD_COMPILED)
WITHOUT_TORCH = tuple(name for name in SINGLE_SIDES if name not in TORCH_DEMANDS)
AGREE_SIDES = ("tenfold compiled", "tenfold unfused", "tensorflow")
FIRST_SIDES = ("tenfold", "tenfold cold", "tensorflow", "tensorflow direct")
QUICK_SIDES = ("tenfold", "tensorflow", "tensorflow direct", "torch")


#: Adam divides a gradient by its own size: the rounding of one near zero becomes a difference of 0.001 in a weight.
ADAM = 2e-2


@dataclass(frozen=True)
class Program:
    """A row of the table of programs."""

    build: Callable[..., Model]
    #: How many times as fast as the faster TensorFlow it has to be.
    demand: float
    #: How far a loss may be from TensorFlow's, relative to the greatest one of the curve.
    rtol: float = 1e-4
    stretch: float | None = None
    #: Demands over tasks, by the name of the case; a program without any is not run there.
    cluster: tuple[tuple[str, float], ...] = ()
    curve: int = CURVE
    #: Hooks of its MonitoredTrainingSession; "" for a plain session.
    hooks: str = ""
    flat_with: str = ""
    flat_by: float = 1.1
    #: The same program in torch, where it has a counterpart.
    in_torch: Callable[[Any, bool], in_torch.Trained] | None = None


PROGRAMS = {
    "mlp": Program(
        mlp.digits,
        1.5,
        rtol=ADAM,
        cluster=(("1 ps async", 3), ("1 ps sync", 4), ("2 ps async", 3), ("2 ps sync", 4)),
        in_torch=torch_mlp.digits,
    ),
    # TensorFlow's own curves, with oneDNN and without, differ by 0.006
    "word2vec": Program(word2vec.word2vec, 2, rtol=1e-2, cluster=(("1 ps async", 1), ("2 ps async", 1))),
    "cnn": Program(
        images.tutorial,
        1,
        rtol=1e-3,
        stretch=1.3,
        cluster=(("1 ps async", 1), ("1 ps sync", 1)),
        in_torch=torch_images.tutorial,
    ),
    "resnet": Program(images.resnet20, 1, rtol=1e-2, in_torch=torch_images.resnet20),
    "lstm": Program(
        recurrent.unrolled_lstm, 1.5, rtol=1e-3, cluster=(("1 ps async", 1),), in_torch=torch_recurrent.lstm
    ),
    "dynamic_lstm": Program(recurrent.dynamic_lstm, 1.5, rtol=1e-3, in_torch=torch_recurrent.lstm),
    "dynamic_gru": Program(recurrent.dynamic_gru, 1.5, rtol=1e-3, in_torch=torch_recurrent.gru),
    "seq2seq": Program(seq2seq.seq2seq, 1.2, rtol=1e-3, in_torch=torch_recurrent.translation),
    "transformer": Program(transformer.encoder, 1.5, rtol=ADAM, in_torch=torch_transformer.encoder),
    "bert_tiny": Program(transformer.bert_tiny, 1.2, rtol=ADAM, in_torch=torch_transformer.bert_tiny),
    "gpt2_sampling": Program(transformer.gpt2_sampling, 1.2, in_torch=torch_transformer.gpt2_sampling),
    "text_cnn": Program(texts.text_cnn, 1, rtol=ADAM, in_torch=torch_texts.text_cnn),
    "separable": Program(pictures.separable, 1, rtol=1e-2, in_torch=torch_pictures.separable),
    "unet": Program(pictures.unet, 1, rtol=ADAM, in_torch=torch_pictures.unet),
    # two nets that answer each other: small differences grow
    "dcgan": Program(pictures.dcgan, 1, rtol=ADAM, curve=20, in_torch=torch_pictures.dcgan),
    "clicks": Program(clicks.clicks, 1.5, cluster=(("2 ps async", 2), ("2 ps sync", 1)), in_torch=torch_clicks.clicks),
    "dien": Program(interest.dien, 1.5, rtol=ADAM),
    "small": Program(mlp.small, 6, in_torch=torch_mlp.small),
    "small_monitored": Program(mlp.small, 6, hooks="stop", flat_with="small", flat_by=1.3),
    "small_all_hooks": Program(mlp.small, 1, hooks="all"),
    "autoencoder": Program(mlp.autoencoder, 1, rtol=ADAM, in_torch=torch_mlp.autoencoder),
    "policy": Program(policy.policy, 1, rtol=ADAM, in_torch=torch_policy.policy),
    "scalar_loop": Program(loops.scalar_loop, 3),
    "scalar_loop_gradient": Program(loops.scalar_loop_gradient, 2),
}


class Driven:
    """A program that is built in a client and stepped. Plain session, or MonitoredTrainingSession with hooks."""

    def __init__(self, ctx: Context, program: Program, hooks: str, *, sync: bool = False) -> None:
        tf = ctx.tf
        tf.logging.set_verbosity(tf.logging.ERROR)
        self._ctx, self._program, self._hooks, self._sync = ctx, program, hooks, sync
        self._graph, self._more_hooks = tf.Graph(), []
        setter = None
        if "ps" in ctx.cluster:
            worker = f"/job:worker/task:{ctx.index}"
            setter = tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(ctx.cluster))
        with ctx.building(self._graph), tf.device(setter):
            self._model = program.build(tf, self._wrap if sync else same)
            self._init = None if hooks else tf.global_variables_initializer()
        started = time.perf_counter()
        self._run = self._opened()
        self._count = 0
        #: The losses since the start.
        self.losses = [self.step()]
        self.first_s = time.perf_counter() - started

    def step(self) -> Any:
        self._count += 1
        return self._model.step(self._run, self._count - 1)

    def _wrap(self, optimizer: Any) -> Any:
        wrapped = self._ctx.tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
        self._more_hooks.append(wrapped)
        return wrapped

    def _opened(self) -> Callable[..., Any]:
        """Opens the session, initializes the variables, and gives its `run`."""
        ctx, tf = self._ctx, self._ctx.tf
        if not self._hooks:
            sess = ctx.session(self._graph)
            if ctx.index == 0:
                sess.run(self._init)
            return sess.run
        with ctx.building(self._graph):
            found = [tf.train.StopAtStepHook(last_step=1_000_000_000)]
            found += [wrapped.make_session_run_hook(ctx.index == 0) for wrapped in self._more_hooks]
            settings: dict[str, Any] = {"log_step_count_steps": None}
            if self._hooks == "all":
                tf.summary.scalar("loss", self._model.loss)
                folder = tempfile.mkdtemp(dir=ctx.folder)
                found += [
                    tf.train.NanTensorHook(self._model.loss),
                    tf.train.LoggingTensorHook({"loss": self._model.loss}, every_n_iter=100),
                    tf.train.StepCounterHook(every_n_steps=100, output_dir=folder),
                ]
                settings = {
                    "checkpoint_dir": folder,
                    "save_checkpoint_steps": 1000,
                    "save_summaries_steps": 100,
                    "log_step_count_steps": None,
                }
            return ctx.monitored(found, **settings).run


class Stepping:
    """Steps in a thread of their own, while a window is open. A step that waits for another worker may outlast it."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self._step = step
        self._open = threading.Event()
        #: What each step took, in ns, since the window opened.
        self._taken: list[int] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="steps", daemon=True)

    def window(self, seconds: float) -> list[int]:
        """Blocks for `seconds`. Raises what a step raised."""
        self._taken = []
        if self._thread.ident is None:
            self._thread.start()
        self._open.set()
        self._thread.join(seconds)
        self._open.clear()
        if self._error is not None:
            raise self._error
        return list(self._taken)

    def _work(self) -> None:
        try:
            while self._open.wait():
                before = time.perf_counter_ns()
                self._step()
                self._taken.append(time.perf_counter_ns() - before)
        except Exception as error:
            self._error = error


def measured(program: Program, hooks: str = "", *, sync: bool = False) -> Callable[[Context], Measure]:
    """The `build` of a case. Synchronous workers depend on each other's turns: theirs have no curve of their own."""

    def build(ctx: Context) -> Measure:
        if ctx.side.runtime == "peers":
            return _measured_in_torch(ctx, program)
        driven = Driven(ctx, program, hooks, sync=sync)

        def result() -> dict[str, Any]:
            if sync:
                return {}
            return {"losses": np.array(driven.losses + [driven.step() for _ in range(program.curve - 1)], np.float64)}

        window = Stepping(driven.step).window if sync else None
        run_in = 0 if sync else RUN_IN
        return Measure(driven.step, result, run_in=run_in, window=window, first_s=driven.first_s)

    return build


def _measured_in_torch(ctx: Context, program: Program) -> Measure:
    torch, build = ctx.tf, program.in_torch
    assert build is not None
    started = time.perf_counter()
    trained = build(torch, ctx.side.compiled)
    stepper = in_torch.Stepper(torch, trained)
    losses = [stepper.step()]
    first_s = time.perf_counter() - started

    def result() -> dict[str, Any]:
        if not trained.comparable:
            return {}
        return {"losses": np.array(losses + [stepper.step() for _ in range(program.curve - 1)], np.float64)}

    floor = harness.floor_s(torch, in_torch.Stepper(torch, build(torch, False)).step, trained.moved)
    return Measure(stepper.step, result, run_in=RUN_IN, first_s=first_s, floor_s=floor)


def _cases() -> Iterator[Case]:
    for name, program in PROGRAMS.items():
        yield Case(
            name,
            TASK,
            measured(program, program.hooks),
            {"tenfold": program.demand},
            sides=SINGLE_SIDES if program.in_torch else WITHOUT_TORCH,
            peers=TORCH_DEMANDS if program.in_torch else {},
            stretch=program.stretch,
            rtol=program.rtol,
            metric="throughput" if program.hooks == "all" else "latency",
            warm_up_s=1.0,
            neighbours=2,
            faults=FAULTS,
            memory=True,
            flat_with=program.flat_with,
            flat_by=program.flat_by,
        )
    for name, program in PROGRAMS.items():
        for form, demand in program.cluster:
            sync = form.endswith("sync") and not form.endswith("async")
            yield Case(
                f"{name}, {form}",
                ONE_PS if form.startswith("1") else TWO_PS,
                measured(program, "stop", sync=sync),
                {"tenfold": demand},
                sides=CLUSTER_SIDES,
                metric="throughput",
                work=0.5 if sync else 1,
                rtol=program.rtol,
                warm_up_s=2.0,
                least_s=1.5,
                faults=FAULTS,
                note="global steps of two workers, MonitoredTrainingSession with a StopAtStepHook",
            )
    for name, program in PROGRAMS.items():
        for form, topology in (("one task", TASK), ("over tasks", OVER_TASKS)):
            name_, build = f"{name}, {form}", measured(program, program.hooks)
            yield Case(name_, topology, build, sides=AGREE_SIDES, rtol=program.rtol, warm_up_s=0.1, note="losses alone")


SUBJECT = Subject(number="12", module="programs", title="programs", sides=SIDES, cases=tuple(_cases()), fresh=True)


def chosen(only: str, modes: tuple[str, ...]) -> Subject:
    """The subject with the cases of these programs and modes. Raises ValueError for a program that there is not."""
    names = [each.strip() for each in only.split(",") if each.strip()]
    if unknown := [name for name in names if name.partition(",")[0] not in PROGRAMS]:
        raise ValueError(f"there is no program {unknown[0]!r}; there are {', '.join(PROGRAMS)}")
    cases = [case for case in SUBJECT.cases if not names or case.name.partition(",")[0] in names]
    alone = [case for case in cases if case.name in PROGRAMS] if set(modes) & {"single", "busy", "first"} else []
    if "busy" not in modes:
        alone = [replace(case, neighbours=0) for case in alone]
    if not {"single", "busy"} & set(modes):
        alone = [replace(case, demands={}, peers={}, faults=None, memory=False, flat_with="") for case in alone]
    forms = {"cluster": CLUSTER_SIDES, AGREE: AGREE_SIDES}
    more = [case for mode, sides in forms.items() if mode in modes for case in cases if case.sides == sides]
    return replace(SUBJECT, cases=(*alone, *more))


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(each.strip() for each in text.split(","))
    if unknown := [mode for mode in modes if mode not in (*MODES, AGREE)]:
        raise argparse.ArgumentTypeError(f"there is no mode {unknown[0]!r}; there are {', '.join((*MODES, AGREE))}")
    return modes


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark 12: programs that people train.")
    harness.add_options(parser)
    choice = f"some of {', '.join(MODES)} (default: all; with --quick single), or {AGREE}"
    parser.add_argument("--mode", type=_modes, help=choice)
    parser.add_argument("--profile", metavar="PROGRAM", help="where a step's time goes on Tenfold")
    parser.add_argument("--report", help="folder for a dated report, such as benchmarks/reports")
    parser.add_argument("--page", action="store_true", help="write the table and the chart of docs/speed.md, too")
    options = parser.parse_args()
    if options.profile:
        import programs_profile

        programs_profile.main(PROGRAMS[options.profile].build, options.seconds or 3.0)
        return
    modes = options.mode or (("single",) if options.quick else MODES)
    try:
        subject = chosen(options.only, modes)
    except ValueError as error:
        parser.error(str(error))
    options.only = ""
    if modes in (("first",), (AGREE,)):
        # a look at the losses, and hardly any timed steps
        options.sides = options.sides or ",".join(FIRST_SIDES if modes == ("first",) else AGREE_SIDES)
        options.rounds, options.seconds = options.rounds or 1, options.seconds or 0.1
    if options.quick and not options.sides:
        options.sides = ",".join(QUICK_SIDES)
    record = harness.Record(options, harness.HERE / "reports" / "latest.json" if options.report else None)
    record.add(harness.measure(subject, record.effort, record.wish))
    if options.report:
        import report

        assert record.path is not None
        print(f"report in {report.write(record.path, Path(options.report))}")
    if options.page:
        import programs_page

        programs_page.write(record.subjects[-1]["rows"], harness.HERE.parent)
    sys.exit(record.subjects[-1]["ended"] or 0)


if __name__ == "__main__":
    main()
