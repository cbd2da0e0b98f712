import type { MapAxis, MeshView } from "../../../api/queries/mesh";
import { DataTable } from "../../../components/DataTable";
import { bandwidth, bytes, count, plain, seconds } from "../../../lib/format";
import { coordinatesOf, titleOf } from "./axes";
import styles from "./Mesh.module.css";

interface Props {
  view: MeshView;
  axis: MapAxis;
  members: readonly number[] | undefined;
}

/** A longer list says nothing that the axes do not. */
const MOST_RANKS = 512;

/** The map in numbers: axes, levels, and the group that is looked at. */
export function MeshTables({ view, axis, members }: Props) {
  const group = (members ?? []).slice(0, MOST_RANKS);
  return (
    <div className={styles.tables}>
      <DataTable
        caption="Axes"
        columns={[
          { name: "axis", title: "Axis", cell: (row) => `${titleOf(row.axis)} (${row.axis})` },
          { name: "size", title: "Group size", number: true, cell: (row) => count(row.group_size) },
          { name: "groups", title: "Groups", number: true, cell: (row) => count(row.num_groups) },
          { name: "level", title: "Slowest level", cell: (row) => row.level ?? "none" },
          {
            name: "domain",
            title: "Members a domain",
            number: true,
            cell: (row) => count(row.members_per_domain),
          },
          { name: "nic", title: "Groups a NIC", number: true, cell: (row) => plain(row.groups_per_nic) },
          { name: "seconds", title: "Costs", number: true, cell: (row) => seconds(row.seconds) },
          {
            name: "payload",
            title: "One rank sends",
            number: true,
            cell: (row) => bytes(row.bytes_per_step),
          },
        ]}
        rows={view.axes}
        rowKey={(row) => row.axis}
      />
      <DataTable
        caption="Levels of the network"
        columns={[
          { name: "level", title: "Level", cell: (row) => row.name },
          { name: "kind", title: "Kind", cell: (row) => row.kind },
          { name: "devices", title: "Devices", number: true, cell: (row) => count(row.devices_per_group) },
          {
            name: "bandwidth",
            title: "Bandwidth a device",
            number: true,
            cell: (row) => bandwidth(row.bandwidth_bytes_per_s),
          },
          { name: "latency", title: "Latency", number: true, cell: (row) => seconds(row.latency_s) },
        ]}
        rows={view.levels}
        rowKey={(row) => row.name}
      />
      {group.length > 0 && (
        <DataTable
          caption={`The ${axis.axis} group of the rank`}
          columns={[
            { name: "rank", title: "Rank", cell: (row) => count(row) },
            {
              name: "node",
              title: "Node",
              number: true,
              cell: (row) => count(Math.floor(row / view.devices_per_node)),
            },
            { name: "device", title: "Device", number: true, cell: (row) => row % view.devices_per_node },
            {
              name: "coordinates",
              title: "Coordinates",
              cell: (row) =>
                coordinatesOf(view, row)
                  .map((each) => `${each.name} ${each.at}`)
                  .join(", "),
            },
          ]}
          rows={group}
          rowKey={(row) => row}
        />
      )}
    </div>
  );
}
