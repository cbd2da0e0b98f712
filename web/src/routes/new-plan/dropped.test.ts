import { expect, test } from "vitest";
import { documentOf, readDropped } from "./dropped";

const file = (name: string, text: string) => new File([text], name);

test("a document is known by its keys, whatever the file is called", () => {
  expect(documentOf("config.json", '{"model_type": "llama"}')).toHaveProperty("model.name", "config.json");
  expect(documentOf("lab.txt", '{"pools": []}')).toHaveProperty("cluster.name", "lab.txt");
});

test.each([
  ["topology.conf", "SwitchName=leaf0 Nodes=n[0-3]"],
  ["netq.json", '{"nodes": []}'],
  ["list.json", "[1]"],
])("%s is left to the service", (name, text) => expect(documentOf(name, text)).toBeUndefined());

test("a .json with a mistake in it is no topology", () => {
  expect(() => documentOf("config.json", '{"a": 1,}')).toThrow(/config\.json is no JSON/);
});

test("files that come together are told apart, and each fault is kept", async () => {
  const topology = file("topology.conf", "SwitchName=leaf0 Nodes=n[0-3]");
  const photo = new File([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13])], "photo.png");
  const large = file("trace.json", `{"a": "${"x".repeat(2 ** 21)}"}`);
  const read = await readDropped([
    file("config.json", '{"num_layers": 2}'),
    topology,
    file("broken.json", "{"),
    file("cluster.json", '{"pools": []}'),
    large,
    photo,
  ]);
  expect(Object.keys(read.documents)).toEqual(["model", "cluster"]);
  expect(read.others).toEqual([topology, large]);
  expect(read.scripts).toEqual([]);
  expect(read.faults).toEqual([
    expect.stringMatching(/^broken\.json is no JSON/),
    expect.stringMatching(/^photo\.png is no text/),
  ]);
});

test("a launch script is no topology, whatever it is called", async () => {
  const text = "torchrun pretrain_gpt.py --num-layers 4";
  const read = await readDropped([
    file("train.sh", "source ./conf.sh"),
    file("notes.txt", text),
    file("topology.conf", "SwitchName=leaf0 Nodes=n[0-3]"),
    file("large.sh", text + " ".repeat(2 ** 21)),
  ]);
  expect(read.scripts.map((each) => each.name)).toEqual(["train.sh", "notes.txt"]);
  expect(read.scripts[1]).toMatchObject({ text, beside: { variables: "", arguments: "", vocabulary: "" } });
  expect(read.others.map((each) => each.name)).toEqual(["topology.conf", "large.sh"]);
  expect(read.documents).toEqual({});
});
