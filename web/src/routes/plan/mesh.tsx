import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { meshQuery } from "../../api/queries/mesh";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { chosenAxis } from "./mesh/axes";
import { MapFigure } from "./mesh/MapFigure";
import { readMeshSearch } from "./mesh.search";

/** Which rank runs where, and who talks to whom over which network. */
export function Mesh() {
  const { planId } = useParams({ from: "/plans/$planId/mesh" });
  const search = readMeshSearch.full(useSearch({ from: "/plans/$planId/mesh" }));
  const navigate = useNavigate();
  const mesh = useQuery(meshQuery(planId));
  if (mesh.error) return <ProblemNotice error={mesh.error} onRetry={() => void mesh.refetch()} />;
  const axis = mesh.data && chosenAxis(mesh.data, search.axis);
  if (!axis) return <Loading label="map of ranks" height={640} lines={5} />;
  const change = (part: object, replace: boolean) =>
    void navigate({
      to: ".",
      search: (before: object) => ({ ...before, ...part }),
      replace,
      resetScroll: false,
    });
  return (
    <MapFigure
      view={mesh.data}
      axis={axis}
      rank={search.rank >= 0 && search.rank < mesh.data.world_size ? search.rank : undefined}
      shown={{ zoom: search.zoom, x: search.x, y: search.y }}
      onAxis={(name) => change({ axis: name }, false)}
      onRank={(rank) => change({ rank: rank ?? -1 }, true)}
    />
  );
}
