// The models that the service serves: which version, where, and of those that follow a training how far behind they are.
// Used by overview.js.

import { html } from "./vendor/preact.js";
import { UNKNOWN, ago, count, duration } from "./format.js";
import { useData } from "./live.js";
import { Card, Failure, Notice, State, Table, route } from "./parts.js";

const moment = (seconds) => ago(new Date(1000 * seconds).toISOString());
/** A column of what a model serves of its training. */
const followed = (name, member, text) => ({
  name, num: true, key: (model) => model.following?.[member],
  cell: (model) => (model.following ? text(model.following[member]) : UNKNOWN),
});

const COLUMNS = [
  { name: "model", cell: (model) => html`<code>${model.name}</code>`, key: (model) => model.name },
  { name: "state", cell: (model) => html`<${State} is=${model.state} />`, key: (model) => model.state },
  { name: "version", cell: (model) => model.version ?? UNKNOWN, key: (model) => model.version },
  { name: "task", cell: (model) => (model.master ? html`<a href=${route("clusters", model.cluster)}><code>${model.master}</code></a>` : UNKNOWN), key: (model) => model.master },
  { name: "follows", cell: (model) => (model.follows ? html`<code>${model.follows}</code>` : UNKNOWN), key: (model) => model.follows },
  { name: "serves", cell: (model) => (model.following ? html`<code>${model.following.increment ?? model.following.checkpoint}</code>` : UNKNOWN) },
  followed("global step", "global_step", count),
  followed("saved", "saved_at", moment),
  followed("behind", "behind_seconds", duration),
  followed("increments", "increments", count),
  followed("rows", "rows", count),
];

/** Nothing where the service serves none. */
export function Models({ config }) {
  const { data, error } = useData(config?.models ? "/v1/models" : null, 2);
  const all = data?.models ?? [];
  const troubles = all.flatMap((model) => [
    model.trouble && `${model.name}: ${model.trouble}`,
    model.following?.trouble && `${model.name} goes on with what it has, since ${duration(Date.now() / 1000 - model.following.trouble_since)}: ${model.following.trouble}`,
  ]).filter(Boolean);
  if (!config?.models) return null;
  return html`<${Card} title="Models" id="models"><${Failure} error=${error} />
    ${troubles.map((each) => html`<${Notice} key=${each}>${each}<//>`)}
    <${Table} id="all-models" label="Models" columns=${COLUMNS} rows=${all} of=${(model) => model.name} size=${20} empty="No model is registered." /><//>`;
}
