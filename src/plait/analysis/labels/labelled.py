"""A trial whose parts are called by their labels: what words and figures are made of, never data for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from plait.analysis.labels.study_labels import StudyLabels
from plait.dataset.model import Tables
from plait.plan.model.links import ChangeLink, LinkDirection
from plait.plan.model.plan import Event, Flow, Path, Plan

_COLUMNS = {"links": ("link",), "events": ("node",), "flows": ("name",)}
"""Columns that name links, their directions, or flows."""


def labelled(plan: Plan, tables: Tables, labels: StudyLabels) -> tuple[Plan, Tables]:
    """Return a trial's plan and tables with labels in place of the names of links, paths and flows.

    Nodes keep their names, which also are those of namespaces: drawings ask `StudyLabels.node`.
    """
    if not labels:
        return plan, tables
    named = _names(plan, labels)
    links = tuple(
        link.model_copy(
            update={
                "name": named[link.name],
                "directions": tuple(_direction(direction, named) for direction in link.directions),
            }
        )
        for link in plan.links
    )
    events = tuple(_event(event, named) for event in plan.events)
    buckets = tuple(
        bucket.model_copy(update={"directions": tuple(named.get(name, name) for name in bucket.directions)})
        for bucket in plan.buckets
    )
    new = plan.model_copy(
        update={
            "links": links,
            "events": events,
            "buckets": buckets,
            "flows": tuple(_flow(flow, labels, named) for flow in plan.flows),
            "peers": tuple(
                peers.model_copy(update={"paths": labelled_paths(peers.paths, labels, named)})
                for peers in plan.peers
            ),
        }
    )
    of_flows = {flow.name: labels.flow(flow.name) for flow in plan.flows}
    return new, {
        name: _table(name, table, of_flows if name == "flows" else named) for name, table in tables.items()
    }


def labelled_paths(
    paths: Sequence[Path],
    labels: StudyLabels,
    named: Mapping[str, str] | None = None,
    *,
    plan: Plan | None = None,
) -> tuple[Path, ...]:
    """Return paths with labels; `named` has the labels of the directions of links, or `plan` the names."""
    called = named if named is not None else _names(plan, labels) if plan is not None else {}
    return tuple(
        path.model_copy(
            update={
                "name": labels.path(path.name),
                **{
                    part: tuple(called.get(name, name) for name in getattr(path, part))
                    for part in ("forward", "backward", "spread")
                },
            }
        )
        for path in paths
    )


def _names(plan: Plan, labels: StudyLabels) -> dict[str, str]:
    """Return what to call each link and each direction, by name."""
    names = {link.name: labels.link(link.name) for link in plan.links}
    return names | {
        d.name: labels.direction(link.name, d.name, d.source, d.target)
        for link in plan.links
        for d in link.directions
    }


def _event(event: Event, named: Mapping[str, str]) -> Event:
    """Return an event whose subject, mark and changed directions have labels."""
    actions = tuple(
        action.model_copy(update={"direction": _direction(action.direction, named)})
        if isinstance(action, ChangeLink)
        else action
        for action in event.actions
    )
    subject, text = named.get(event.subject, event.subject), _mark(event.text, named)
    return event.model_copy(update={"subject": subject, "text": text, "actions": actions})


def _direction(direction: LinkDirection, named: Mapping[str, str]) -> LinkDirection:
    return direction.model_copy(update={"name": named[direction.name]})


def _flow(flow: Flow, labels: StudyLabels, named: Mapping[str, str]) -> Flow:
    paths = labelled_paths(flow.paths, labels, named)
    return flow.model_copy(update={"name": labels.flow(flow.name), "paths": paths})


def _mark(text: str, named: Mapping[str, str]) -> str:
    """Return the words of an event, which begin with the name of what it changes: `h1-s1 down`, `h1-s1: 2 Mbit/s`."""
    name = text.split(" ", 1)[0].removesuffix(":")
    return named[name] + text[len(name) :] if name in named else text


def _table(name: str, table: pl.DataFrame, named: Mapping[str, str]) -> pl.DataFrame:
    changed = [
        pl.col(column).replace(dict(named)) for column in _COLUMNS.get(name, ()) if column in table.columns
    ]
    return table.with_columns(changed) if changed else table
