"""The plan of a run on several nodes: tasks, bytes, and the longest task of each stage."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from toolkit.errors import NothingThere
from toolkit.ingest.plan import makers
from toolkit.ingest.shares import Dealer
from toolkit.stages.context import INPUTS, Context, table
from toolkit.stages.declaration import Kind, ToDo
from toolkit.stages.disk_quota import DOCUMENTS
from toolkit.storage_options import size_in_words


class StageOnCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a stage.

    Attributes:
        kind: Kind of the stage. Of one that needs all shards, tasks are those that read shards; what decides follows.
        tasks: Number of shards, or inputs.
        read: Stored bytes that it reads: of inputs, or of documents and of the attributes that it joins.
        written: Stored bytes that it writes, estimated; None where nobody can tell, as of a model's answers.
        longest: Stored bytes that its longest task reads.
        busiest: Stored bytes that the busiest core reads.
        idle: Number of cores that have no task.
        unsized: Number of tasks whose bytes are not known, and not counted.
    """

    kind: Kind
    tasks: int
    read: int
    written: int | None
    longest: int
    busiest: int
    idle: int
    unsized: int = 0


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run on several nodes.

    Attributes:
        nodes: Number of nodes, each of which has the shards that ``--shard I/NODES`` gives it.
        cores: Number of cores of each, which take tasks, the largest first.
        stages: Plan of each stage, by its name, in the order of the run.
        unknown: Names of stages of which it is not known.
    """

    nodes: int
    cores: int
    stages: dict[str, StageOnCluster]
    unknown: list[str] = []

    def __str__(self) -> str:
        rows = [["stage", "tasks", "reads", "writes", "longest task", "busiest core", "idle cores"]]
        for name, stage in self.stages.items():
            together = ", then all together" if stage.kind == "whole" and stage.tasks else ""
            written = "?" if stage.written is None else size_in_words(stage.written)
            sizes = [size_in_words(stage.read), written, size_in_words(stage.longest), size_in_words(stage.busiest)]
            rows.append([name + together, f"{stage.tasks:,}", *sizes, f"{stage.idle:,}"])
        unsized = sum(stage.unsized for stage in self.stages.values())
        notes = [
            f"# on {self.nodes:,} nodes with {self.cores:,} cores each; bytes as they are stored, estimated where",
            "# nothing is there yet. Stages that are per shard work on an input in one pass, and read it once.",
            *([f"# not counted: {unsized:,} tasks whose size nobody tells"] if unsized else []),
            *(
                [f"# not known before the stages before them are done: {', '.join(self.unknown)}"]
                if self.unknown
                else []
            ),
        ]
        return "\n".join([*notes, table(rows, right=range(1, 7))])


def on_cluster(context: Context, works: Iterable[ToDo], nodes: int, cores: int) -> Cluster:
    """Return the plan of a run on several nodes.

    Args:
        context: Context of the configuration.
        works: Open work, from `toolkit.stages.declaration.to_do`.
        nodes: Number of nodes.
        cores: Number of cores of each.
    """
    inputs = context.inputs() if context.has(INPUTS) else []
    documents: dict[str, int | None] = {**context.disk.documents_of(inputs)}
    if context.works_on_dataset:
        with suppress(NothingThere):  # no input is ingested yet
            documents |= context.dataset.sizes()
    sizes: dict[str, int | None] = {work.shard: work.size for work in inputs}
    dealt, maker = Dealer(nodes).deal(sizes or documents), makers(inputs)
    kinds: dict[str, Kind] = {}
    tasks: dict[str, set[str]] = {}
    unknown: dict[str, None] = {}
    for work in works:
        if work.row.unknown and not work.keys:
            unknown[work.stage] = None
            continue
        kinds[work.stage] = work.kind
        shards = () if work.row.is_one else work.to_do  # of a thing that is made of all shards, the keys are no shards
        tasks.setdefault(work.stage, set()).update((work.row.shards or {}).get(key, key) for key in shards)
    joined, stages = 0.0, dict[str, StageOnCluster]()
    for name, of_stage in tasks.items():
        use = context.stages[name].disk_use(context)
        beside = joined / DOCUMENTS if use.mixed or not use.reads_documents else 0.0  # the attributes
        factor = 1.0 if name == INPUTS else use.reads_documents + beside
        inputs_of_stage = sizes if name == INPUTS else documents
        reads = {
            shard: None if (size := inputs_of_stage.get(shard)) is None else round(size * factor) for shard in of_stage
        }
        by_node: list[dict[str, int | None]] = [{} for _ in range(nodes)]
        homes = {shard: made_by.shard if (made_by := maker(shard)) else shard for shard in reads}
        new = Dealer(nodes).deal({shard: size for shard, size in reads.items() if homes[shard] not in dealt})
        for shard, size in reads.items():
            by_node[new[shard] if shard in new else dealt[homes[shard]]][shard] = size
        stored = sum(documents.get(shard) or 0 for shard in of_stage)
        rate = use.attributes + use.signatures + 2 * use.mixed * use.chosen
        written = stored if name == INPUTS else round(stored / DOCUMENTS * rate) if rate or not stored else None
        stages[name] = _stage(kinds[name], by_node, written, cores)
        joined += use.attributes
    return Cluster(nodes=nodes, cores=cores, stages=stages, unknown=[*unknown])


def _stage(kind: Kind, by_node: Sequence[Mapping[str, int | None]], written: int | None, cores: int) -> StageOnCluster:
    """Return the plan of a stage from the tasks of each node."""
    busiest = idle = 0
    for tasks in by_node:
        loads = [0] * cores
        for shard, core in Dealer(cores).deal(tasks).items():
            loads[core] += tasks[shard] or 0
        busiest, idle = max(busiest, *loads), idle + max(0, cores - len(tasks))
    sizes = [size for tasks in by_node for size in tasks.values()]
    sized = [size for size in sizes if size is not None]
    return StageOnCluster(
        kind=kind,
        tasks=len(sizes),
        read=sum(sized),
        written=written,
        longest=max(sized, default=0),
        busiest=busiest,
        idle=idle,
        unsized=len(sizes) - len(sized),
    )
