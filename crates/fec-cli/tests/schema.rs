//! The JSON of every command, by docs/schema: what it prints is described there, and nothing else is printed.

mod common;

use common::{Arena, flip, payload, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Output;

/// The schema, and the names of what was printed so far.
struct Schema {
    root: Value,
    seen: BTreeSet<String>,
}

impl Schema {
    fn read() -> Schema {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/fec-1.json");
        let root = serde_json::from_slice(&std::fs::read(path).expect("the schema")).expect("JSON");
        Schema { root, seen: BTreeSet::new() }
    }

    /// The faults of a value, by a part of the schema. Only the words that the schema uses are known.
    fn faults(&self, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
        for (word, asked) in schema.as_object().expect("a schema") {
            let is_right = match word.as_str() {
                "description"
                | "title"
                | "$schema"
                | "$id"
                | "$defs"
                | "properties"
                | "additionalProperties" => true,
                "$ref" => {
                    let name = asked.as_str().and_then(|name| name.strip_prefix("#/$defs/")).expect("a name");
                    self.faults(&self.root["$defs"][name], value, at, out);
                    true
                }
                "type" => match asked {
                    Value::Array(types) => types.iter().any(|of| is_of(of, value)),
                    of => is_of(of, value),
                },
                "const" => asked == value,
                "enum" => asked.as_array().expect("a list").contains(value),
                "minimum" => value.as_i64().is_none_or(|value| value >= asked.as_i64().expect("a number")),
                "maximum" => value.as_i64().is_none_or(|value| value <= asked.as_i64().expect("a number")),
                "required" => {
                    let names =
                        asked.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name"));
                    let lacking: Vec<&str> = names.filter(|name| value.get(name).is_none()).collect();
                    out.extend(lacking.iter().map(|name| format!("{at}: {name} is missing")));
                    true
                }
                "items" => {
                    let items = value.as_array().into_iter().flatten().enumerate();
                    items.for_each(|(nth, item)| self.faults(asked, item, &format!("{at}[{nth}]"), out));
                    true
                }
                "anyOf" => {
                    let fits = |schema: &Value| self.all(schema, value, at).is_empty();
                    asked.as_array().expect("a list").iter().any(fits)
                }
                other => panic!("the test does not know {other}"),
            };
            if !is_right {
                out.push(format!("{at}: {value} against {word} {asked}"));
            }
        }
        for (name, of) in value.as_object().into_iter().flatten() {
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(schema), _) => self.faults(schema, of, &format!("{at}.{name}"), out),
                (None, Some(Value::Bool(false))) => out.push(format!("{at}: {name} is not described")),
                (None, Some(schema)) => self.faults(schema, of, &format!("{at}.{name}"), out),
                (None, None) => {}
            }
        }
    }

    fn all(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut out = Vec::new();
        self.faults(schema, value, at, &mut out);
        out
    }

    /// Checks each object that a command printed. Returns that of the whole.
    fn check(&mut self, args: &[&str], output: &Output) -> Value {
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        let objects = said.lines().filter(|line| line.starts_with("{\""));
        let objects: Vec<Value> = objects.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for object in &objects {
            let named = self.root["anyOf"].as_array().expect("a list").clone();
            let tried = named.iter().map(|of| (self.all(of, object, ""), of));
            let (faults, of) = tried.min_by_key(|(faults, _)| faults.len()).expect("a few");
            assert!(faults.is_empty(), "{args:?}: {object}\nnearest: {of}\n{}", faults.join("\n"));
            self.seen.insert(of["$ref"].as_str().expect("a name").replace("#/$defs/", ""));
        }
        // Among several stands the exit code of all.
        let code = common::code(output);
        let of_all = objects.into_iter().rfind(|object| object["exit_code"] == code);
        of_all.unwrap_or_else(|| panic!("{args:?}, exit code {code}: {said}"))
    }
}

fn is_of(of: &Value, value: &Value) -> bool {
    match of.as_str().expect("a type") {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("the test does not know {other}"),
    }
}

#[test]
fn every_command_speaks_the_words_of_the_schema() {
    let arena = Arena::new();
    let mut schema = Schema::read();
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 100_000));
    }
    for nth in 0..8 {
        arena.write(format!("d/{nth}"), &payload(20 + nth, 30_000));
    }
    ["one", "two", "three"].iter().for_each(|place| std::fs::create_dir(arena.path(place)).unwrap());
    let mut run = |line: &str, exit: i32, state: &str| {
        let args: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let output = arena.fec(&args).env("FEC_SIGN_PASSPHRASE", "").output().unwrap();
        common::expect(&output, exit);
        let last = schema.check(&args, &output);
        assert_eq!(
            (last["state"].as_str(), last["schema_version"].as_u64()),
            (Some(state), Some(1)),
            "{line}: {last}"
        );
        last
    };
    run("keygen -o key", 0, "intact");
    run("keygen --sign -o sk", 0, "intact");
    run("keygen --sign --pq -o pq", 0, "intact");
    run("keygen --stream -o stream.key", 0, "intact");
    let made = run("encode a --sign sk", 0, "intact");
    let root = made["root"].as_str().unwrap().to_owned();
    assert_eq!((&made["margin"]["shards"], &made["margin"]["gap_bytes"]), (&67.into(), &Value::Null));
    let made = run("encode a -o a.fec", 0, "intact");
    assert!(made["margin"]["gap_bytes"].as_u64().unwrap() > 100_000, "{made}");
    run("encode a none b -o {}.f --payload-digest", 4, "refused");
    let recipient = std::fs::read_to_string(arena.path("key")).unwrap();
    let recipient = recipient.lines().next().unwrap().replace("# public key: ", "");
    run(&format!("encode b -o sealed.fec --recipient {recipient}"), 0, "intact");
    run("decode sealed.fec -i key -o opened", 0, "intact");
    // Shard files and containers.
    run("verify a.shards --signer sk.pub", 0, "intact");
    run("verify a.fec --deep", 0, "intact");
    run("verify a.shards a.fec none", 4, "refused");
    flip(&arena.path("a.fec"), 2000);
    flip(&arena.path("a.shards/a.000.shard"), 2000);
    run(&format!("decode a.shards -o back --root {root}"), 0, "damaged");
    let found = run("verify a.shards", 1, "damaged");
    assert_eq!(found["margin"]["shards"], 66);
    run("verify a.fec", 1, "damaged");
    let rows = run("verify a.shards a.fec", 1, "damaged");
    assert_eq!(rows["encodings"][0]["margin"]["shards"], 66);
    run("repair a.shards a.fec -n", 1, "damaged");
    run("repair a.shards", 0, "damaged");
    run("repair a.shards", 0, "intact");
    (0..80).for_each(|nth| std::fs::remove_file(arena.path(format!("a.shards/a.0{nth:02}.shard"))).unwrap());
    run("verify a.shards", 3, "lost");
    run("decode a.shards -o lost", 3, "lost");
    run("repair a.shards", 3, "lost");
    // Sidecars.
    run("protect d", 0, "intact");
    run("protect d --list", 0, "intact");
    run("manifest d.fecp", 0, "intact");
    arena.write("a.root", format!("{root}\n").as_bytes());
    let made = run("attest a.root", 0, "intact");
    arena.write("a.statement", made["statement"].to_string().as_bytes());
    run("attest a.root --check a.statement", 0, "intact");
    run("attest a --check a.statement", 2, "refused");
    let found = run("verify d.fecp", 0, "intact");
    assert!(found["margin"]["gap_bytes"].as_u64().unwrap() > 10_000, "{found}");
    run("verify d.fecp --sample 50%", 0, "intact");
    std::fs::remove_file(arena.path("d/3")).unwrap();
    run("verify d.fecp", 1, "damaged");
    run("repair d.fecp", 0, "damaged");
    arena.write("d/4", b"edited");
    run("verify d.fecp a.fec", 1, "damaged");
    run("protect --update d", 0, "intact");
    (0..6).for_each(|nth| std::fs::remove_file(arena.path(format!("d/{nth}"))).unwrap());
    run("verify d.fecp", 3, "lost");
    run("repair d.fecp a.fec", 3, "lost");
    // Stores.
    let sent = run("encode b -k 2 -m 2 --to one --to two --to three --crowded", 0, "intact");
    let root = sent["root"].as_str().unwrap().to_owned();
    let from = format!("--from one --from two --from three --root {root}");
    assert_eq!(run(&format!("verify {from}"), 0, "intact")["margin"]["shards"], 2);
    assert_eq!(run(&format!("verify {from} --audit"), 0, "intact")["places"][2]["verdict"], "shown");
    run(&format!("decode {from} -o stored"), 0, "intact");
    std::fs::remove_dir_all(arena.path("one")).unwrap();
    std::fs::create_dir(arena.path("one")).unwrap();
    run(&format!("verify {from}"), 1, "damaged");
    run(&format!("verify {from} --audit"), 1, "damaged");
    let found = run("list one two three", 1, "damaged");
    let row = &found["encodings"][0];
    assert_eq!((&row["root"], &row["margin"]["shards"]), (&root.as_str().into(), &0.into()));
    run("list none three", 4, "refused");
    run("list three", 3, "lost");
    run(&format!("repair {from} --now"), 0, "damaged");
    run("list one two three", 0, "intact");
    run(&format!("forget {from}"), 2, "refused");
    run(&format!("forget {from} --yes"), 0, "intact");
    run(&format!("forget {from} --yes"), 0, "intact");
    run("list", 2, "refused");
    let key = text(&arena.read("key"));
    let recipient = key.lines().find_map(|line| line.strip_prefix("# public key: ")).expect("a recipient");
    arena.write("recipients", recipient.as_bytes());
    let sealed = run("encode b -k 2 -m 2 --to one --to two --crowded -R recipients", 0, "intact");
    let root = sealed["root"].as_str().unwrap().to_owned();
    let sealed = run(&format!("rekey --from one --from two --root {root} -i key -R recipients"), 0, "intact");
    assert_eq!((sealed["old_root"].as_str(), &sealed["recipients"]), (Some(&*root), &1.into()));
    // Live streams.
    run("encode --stream a -o a.stream", 0, "intact");
    run("decode a.stream -o streamed", 0, "intact");
    run("encode --stream a -o lossy.stream --impair burst:40,5 --rate 1/100", 0, "intact");
    run("decode lossy.stream -o lossy", 3, "lost");
    // A policy, and updates that it or the number of bytes stops.
    for nth in 0..12 {
        arena.write(format!("g/{nth}.jpg"), &payload(30 + nth, 30_000));
    }
    run("protect --policy photos g", 0, "intact");
    (0..2).for_each(|nth| std::fs::remove_file(arena.path(format!("g/{nth}.jpg"))).unwrap());
    assert_eq!(run("protect -u g", 2, "refused")["kind"], "many_gone");
    arena.write("g/10.jpg", &payload(50, 30_000));
    // Its end stands in one block with what is gone, and would need another place, which what is damaged does not get.
    assert_eq!(run("protect -u --pruned g", 1, "damaged")["kind"], "held");
    (0..2).for_each(|nth| drop(arena.write(format!("g/{nth}.jpg"), &payload(30 + nth, 30_000))));
    assert_eq!(run("protect -u g", 1, "damaged")["update"]["held"][0]["state"], "rotten");
    run("verify g.fecp", 1, "damaged");
    // The machine, and the command itself.
    run("bench --gates", 0, "intact");
    run("encode --backend list", 0, "intact");
    run("encode a -o x --tuning list", 2, "refused");
    run("encode --tuning list", 0, "intact");
    run("verify --forse", 2, "refused");
    run("nonsense", 2, "refused");
    let described = schema.root["anyOf"].as_array().unwrap().iter();
    let described: BTreeSet<String> =
        described.map(|of| of["$ref"].as_str().unwrap().replace("#/$defs/", "")).collect();
    let unseen: Vec<&String> = described.difference(&schema.seen).collect();
    // The tests of bench and of the link print these two.
    assert_eq!(unseen, ["bench-link"], "not printed here");
}
