//! `fec bench` as a program: formats, comparisons, gates, time and signals.

mod common;

use common::{code, expect, fec, run, scratch, text};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn json(args: &[&str]) -> Value {
    let output = fec().args(args).args(["--format", "json"]).output().expect("fec starts");
    expect(&output, 0);
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// A quick run of the reference workload.
const SMALL: [&str; 9] = ["bench", "--set-size", "64K", "--hash", "blake3", "-j", "1", "--budget", "1"];

#[test]
fn all_formats_tell_the_same() {
    let args = ["bench", "model", "-k", "10", "-m", "4", "--model", "cortex-a53"];
    let report = json(&args);
    let expected = report["tables"][0]["rows"][0]["l1_misses"].as_u64().expect("a count") as f64;
    for (format, separator) in [("csv", ","), ("markdown", "|"), ("table", " ")] {
        let output = fec().args(args).args(["--format", format]).output().expect("fec starts");
        expect(&output, 0);
        let printed = text(&output.stdout);
        let line = printed.lines().find(|line| line.contains("matrix") && !line.contains("Modelled"));
        let line = line.unwrap_or_else(|| panic!("{printed}"));
        // The memory of each run lies elsewhere, which makes a few cache misses more or fewer.
        let numbers = line.split(separator).filter_map(|cell| cell.trim().parse().ok());
        let same = numbers.filter(|number: &f64| (number / expected - 1.0).abs() < 0.005).count();
        assert_eq!(same, 1, "{format}: {line}");
        assert!(printed.contains("backend ") && printed.contains("counters: "), "{printed}");
    }
    let short = fec().args(args).arg("--json").output().expect("fec starts");
    assert_eq!(serde_json::from_slice::<Value>(&short.stdout).expect("JSON")["preset"], "model");
}

#[test]
fn the_header_tells_where_and_by_what() {
    let report = json(&SMALL);
    let machine = &report["machine"];
    for field in ["date", "cpu", "compiler", "target", "revision", "version"] {
        assert!(machine[field].as_str().is_some_and(|value| !value.is_empty()), "{field}: {machine}");
    }
    assert!(report["counters"].as_str().is_some_and(|counters| !counters.is_empty()));
    // A missing counter is null in every row, and never 0.
    let status = report["counter_status"].as_object().expect("a map");
    if status["cycles"] != "ok" {
        for row in report["tables"][0]["rows"].as_array().expect("rows") {
            assert!(row["cycles_per_byte"].is_null(), "{row}");
        }
    }
}

#[test]
fn phases_are_those_of_the_work_and_add_up() {
    let report = json(&SMALL);
    for (table, phases) in [
        ("encode", vec!["encode", "digests", "tree", "other", "total", "set-up"]),
        ("decode", vec!["check", "decode", "digests", "tree", "other", "total", "set-up"]),
        (
            "decode_strict",
            vec!["check", "decode", "re-encode", "digests", "tree", "other", "total", "set-up"],
        ),
    ] {
        let tables = report["tables"].as_array().expect("tables");
        let rows =
            tables.iter().find(|t| t["name"] == table).expect("the table")["rows"].as_array().expect("rows");
        let names: Vec<&str> = rows.iter().filter_map(|row| row["phase"].as_str()).collect();
        assert_eq!(names, phases);
        let share = |row: &Value| row["share"].as_f64().unwrap_or(0.0);
        let sum: f64 = rows.iter().filter(|row| row["phase"] != "total").map(share).sum();
        assert!((0.8..1.2).contains(&sum), "{table}: phases are {sum} of the whole");
    }
}

#[test]
fn the_wrong_backend_is_an_error_before_any_work() {
    let output =
        fec().args(["bench", "--backend", "scalar", "--require-backend", "avx9"]).output().expect("fec");
    expect(&output, 2);
    assert!(text(&output.stderr).contains("scalar would run"), "{}", text(&output.stderr));
    let args = ["bench", "model", "--backend", "scalar", "--require-backend", "scalar"];
    expect(&fec().args(args).output().expect("fec"), 0);
}

/// Multiplies every measured time of a saved result.
fn scale(value: &mut Value, factor: f64) {
    if let Value::Object(map) = value {
        if map.contains_key("median") && map.contains_key("slices") {
            for part in ["median", "min", "low", "high"] {
                map[part] = (map[part].as_f64().expect("a number") * factor).into();
            }
        } else {
            map.values_mut().for_each(|value| scale(value, factor));
        }
    } else if let Value::Array(values) = value {
        values.iter_mut().for_each(|value| scale(value, factor));
    }
}

#[test]
fn comparisons_see_what_became_slower_and_only_that() {
    let (folder, path) = scratch("unused", b"");
    let run = |args: &[&str]| run(folder.path(), SMALL.iter().chain(args));
    expect(&run(&["--save", "then.json"]), 0);
    let saved = std::fs::read(path.with_file_name("then.json")).expect("it was saved");
    let saved: Value = serde_json::from_slice(&saved).expect("JSON");
    for (name, factor) in [("slow.json", 20.0), ("fast.json", 0.05)] {
        let mut other = saved.clone();
        scale(&mut other["tables"], factor);
        // The result counts as measured on a quiet machine: one from a busy machine opens no gate.
        for cause in ["run_queue_wait", "steal", "other_cpus", "core_mhz"] {
            other["interference"][cause] = Value::Null;
        }
        std::fs::write(path.with_file_name(name), other.to_string()).expect("a file");
    }
    // Compared with a result that was twenty times faster, this one fails the gate, however busy the machine is.
    // Compared with a slower one, it passes.
    let output = run(&["--compare", "fast.json", "--gate", "50%", "--format", "json"]);
    expect(&output, 1);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["comparison"]["slower"].as_u64() > Some(5), "{}", report["comparison"]);
    assert_eq!(report["comparison"]["faster"], 0);
    assert_eq!(report["comparison"]["verdict"], "failed");
    let output = run(&["--compare", "slow.json", "--gate", "0%"]);
    expect(&output, 0);
    assert!(text(&output.stdout).contains("gate 0.0 %: passed"), "{}", text(&output.stdout));
    // A file that is no result is refused before the work.
    std::fs::write(path.with_file_name("bad.json"), "{}").expect("a file");
    expect(&run(&["--compare", "bad.json"]), 2);
    expect(&run(&["--compare", "not-there.json"]), 4);
}

/// The slowest kernel in place of the best one acts as a slower build. The test uses one thread, because slices of
/// other threads look like disturbed ones.
#[test]
fn a_slower_kernel_shuts_the_gate() {
    let backends = fec().args(["bench", "--backend", "list"]).output().expect("fec starts");
    if text(&backends.stdout).lines().count() < 2 {
        return;
    }
    let (folder, _) = scratch("unused", b"");
    let run = |args: &[&str]| run(folder.path(), SMALL.iter().chain(args));
    expect(&run(&["--save", "then.json"]), 0);
    let output = run(&["--backend", "scalar", "--compare", "then.json", "--gate", "5%"]);
    expect(&output, 1);
    assert!(text(&output.stdout).contains("gate 5.0 %: FAILED"), "{}", text(&output.stdout));
}

#[test]
fn the_first_line_says_what_came_of_it() {
    let report = json(&SMALL);
    let headline = report["headline"].as_str().expect("a sentence");
    assert!(headline.starts_with("encodes ") && headline.contains("b/s ("), "{headline}");
    assert!(headline.contains(" on one core; ") && headline.contains(" % of the time"), "{headline}");
    let disturbed = report["disturbed"].as_bool().expect("yes or no");
    assert_eq!(headline.contains("(other work disturbed it)"), disturbed, "{headline}");
    // The figure is the one in the table.
    let total = rows(&report, "encode").iter().find(|row| row["phase"] == "total").expect("the total");
    let gigabytes = positive(total, "megabits_per_second") / 8e3;
    let (told, unit) = headline.split_once('(').expect("bytes").1.split_once(' ').expect("a unit");
    let told: f64 = told.parse().expect("a number");
    let told = if unit.starts_with("GB/s") { told } else { told / 1e3 };
    assert!((told / gigabytes - 1.0).abs() < 0.06, "{headline}: {gigabytes}");
    // In text, the figure is the first line.
    let output = fec().args(SMALL).env_remove("COLUMNS").output().expect("fec starts");
    let printed = text(&output.stdout);
    assert!(printed.starts_with("encodes "), "{printed}");
    assert!(printed.lines().nth(1).is_some_and(|line| line.starts_with("backend ")), "{printed}");
    // The line is repeated at the end, because the first one has left the screen.
    assert!(printed.lines().count() > 20 && printed.lines().last() == printed.lines().next(), "{printed}");
}

/// The tables of a model report, with a 9 for each number and at most two blanks in a row.
fn shape(printed: &str) -> Vec<String> {
    let from = printed.find("Modelled").expect("the table");
    let to = printed.find("model: how often").expect("what stands below");
    let shape_of = |line: &str| {
        let mut out = String::new();
        for c in line.chars() {
            match c {
                '0'..='9' if out.ends_with('9') => {}
                '0'..='9' => out.push('9'),
                ' ' if out.ends_with("  ") => {}
                c => out.push(c),
            }
        }
        out
    };
    printed[from..to].lines().map(shape_of).collect()
}

#[test]
fn a_table_is_cut_for_terminals_and_whole_in_pipes() {
    let args = ["bench", "model", "-k", "10", "-m", "4", "--model", "cortex-a53", "--backend", "scalar"];
    let wide = text(&fec().args(args).env_remove("COLUMNS").output().expect("fec starts").stdout);
    let narrow = text(&fec().args(args).env("COLUMNS", "80").output().expect("fec starts").stdout);
    let model = "model L9/KiB  L9 prefetched  model L9/KiB  L9 prefetched";
    assert_eq!(
        shape(&wide),
        [
            "Modelled misses of encoding a set by the loops of scalar: cortex-a9 (L9 9 KiB 9-way, L9 9 KiB 9-way, LRU)",
            &format!(
                "  k  m  shard B  engine  rounds run  L9 misses a round  L9 misses a round  {model}  L9/packet  L9/packet"
            ),
            "  9  9  9  matrix  9  9  9  9.9  9.9  9.9  9.9  9.9  9.9",
            "",
        ]
    );
    assert_eq!(
        shape(&narrow),
        [
            "Modelled misses of encoding a set by the loops of scalar: cortex-a9 (L9 9 KiB",
            "  9-way, L9 9 KiB 9-way, LRU)",
            "  k  m  shard B  engine  rounds run  L9 misses a round  L9 misses a round",
            "  9  9  9  matrix  9  9  9",
            "",
            &format!("  k  m  shard B  {model}"),
            "  9  9  9  9.9  9.9  9.9  9.9",
            "",
            "  k  m  shard B  L9/packet  L9/packet",
            "  9  9  9  9.9  9.9",
            "",
        ]
    );
}

/// A model without times has no excuse for other figures, nor for what else ran.
#[test]
fn a_model_is_the_same_each_time() {
    let args = ["bench", "model", "-k", "10", "-m", "4", "--model", "cortex-a53"];
    let run = |env: &str| {
        let output = fec().args(args).env("STACK", env).env_remove("COLUMNS").output().expect("fec starts");
        expect(&output, 0);
        let printed = text(&output.stdout);
        let from = printed.find("Modelled").expect("the table");
        (printed.lines().next().expect("a sentence").to_owned(), printed[from..].to_owned())
    };
    let first = run("");
    assert!(
        first.0.starts_with("a model: encoding 1 KiB (16 lines in, 6 out) misses the first cache "),
        "{first:?}"
    );
    assert!(!first.1.contains("interference") && !first.1.contains("run-queue"), "{first:?}");
    for place in [16, 700, 3000] {
        assert_eq!(run(&"x".repeat(place)), first, "{place}");
    }
}

#[test]
fn lists_need_no_question_mark() {
    let list = |args: &[&str]| {
        let output = fec().args(args).output().expect("fec starts");
        expect(&output, 0);
        text(&output.stdout)
    };
    let backends = list(&["bench", "--backend", "list"]);
    assert_eq!(backends.lines().last(), Some("scalar"), "{backends}");
    assert_eq!(list(&["bench", "--backend", "?"]), backends);
    let tuning = list(&["bench", "--tuning", "list"]);
    assert_eq!(tuning.matches("chosen for this machine").count(), 1, "{tuning}");
    assert!(tuning.lines().any(|line| line.starts_with("cortex-a53")), "{tuning}");
    // Each line begins with a value that the option takes.
    for change in tuning.lines().filter_map(|line| line.split_whitespace().next()) {
        let args = ["bench", "model", "-k", "4", "-m", "2", "--tuning", change];
        expect(&fec().args(args).output().expect("fec starts"), 0);
    }
    let json = list(&["bench", "--backend", "list", "--tuning", "list", "--json"]);
    let lists: Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!(lists["backends"].as_array().map(Vec::len), Some(backends.lines().count()));
    assert!(lists["tuning"]["settings"]["tile"].is_string(), "{lists}");
    // Inputs would not be read: exit code 0 would say that they were.
    for command in [
        &["verify", "x"][..],
        &["encode", "x"],
        &["repair", "x"],
        &["manifest", "x"],
        &["verify", "--roots", "x"],
    ] {
        let output = fec().args(command).args(["--backend", "list"]).output().expect("fec starts");
        expect(&output, 2);
        assert!(output.stdout.is_empty(), "{command:?}");
        let said = text(&output.stderr);
        let advised =
            said.lines().last().and_then(|line| line.trim().strip_prefix("fec ")).expect("a command");
        assert_eq!(list(&advised.split(' ').collect::<Vec<_>>()), backends);
    }
}

#[test]
fn what_is_not_synced_has_no_time_of_syncing() {
    let (folder, _) = scratch("unused", b"");
    let output = run(folder.path(), ["bench", "files", "--quick", "--set-size", "4M", "-j", "1", "--json"]);
    expect(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let stages = |command: &str| -> Vec<&str> {
        let of = rows(&report, "stages").iter().filter(|row| row["command"] == command);
        of.filter_map(|row| row["stage"].as_str()).collect()
    };
    for command in ["encode to shard files", "decode shard files"] {
        assert!(stages(command).contains(&"sync"), "{command}");
        let without = stages(&format!("{command}, no sync"));
        assert!(without.contains(&"write") && !without.contains(&"sync"), "{command}: {without:?}");
    }
}

#[test]
fn the_gates_are_open() {
    let output = fec().args(["bench", "--gates", "--json"]).output().expect("fec starts");
    expect(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let gates = report["gates"].as_array().expect("gates");
    let of = |start: &str| -> u64 {
        let gate =
            gates.iter().find(|gate| gate["name"].as_str().is_some_and(|name| name.starts_with(start)));
        let gate = gate.unwrap_or_else(|| panic!("no gate {start}"));
        assert_eq!(gate["right"], gate["of"], "{gate}");
        gate["of"].as_u64().expect("a count")
    };
    assert_eq!(of("products"), 65_536);
    assert_eq!(of("encode, erase"), 1_000);
    assert_eq!(of("random sets"), 10_000);
}

/// The rows of a table.
fn rows<'a>(report: &'a Value, table: &str) -> &'a [Value] {
    let tables = report["tables"].as_array().expect("tables");
    let table = tables.iter().find(|t| t["name"] == table).unwrap_or_else(|| panic!("no table {table}"));
    table["rows"].as_array().expect("rows")
}

/// A figure that must be there and above 0.
fn positive(row: &Value, name: &str) -> f64 {
    let value = row[name].as_f64().or_else(|| row[name].as_u64().map(|whole| whole as f64));
    value.filter(|value| *value > 0.0).unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn the_sweep_of_settings_ends_with_a_verdict() {
    let report = json(&["bench", "tuning", "--quick", "--rounds", "5"]);
    let rows = rows(&report, "tuning");
    let notes: Vec<&str> = report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    // A case that a loaded machine has no time for is reported.
    let is_left_out = |end: &str| notes.iter().any(|note| note.ends_with(&format!("{end}: not measured")));
    let has = |name: &str, is_it: &dyn Fn(&str) -> bool| {
        rows.iter().any(|row| row[name].as_str().is_some_and(is_it))
    };
    assert!(has("settings", &|name| name.starts_with("prefetch=")) || is_left_out(""), "{notes:?}");
    assert!(has("case", &|case| case.ends_with("from memory")) || is_left_out("from memory"), "{notes:?}");
    for row in rows {
        let of = |name: &str| row[name]["median"].as_f64().expect("a time");
        let ratio = positive(row, "ratio");
        assert!((of("chosen_us") / of("time_us") / ratio - 1.0).abs() < 1e-6, "{row}");
        assert!(positive(row, "megabits_per_second") > 1.0, "{row}");
    }
    let last = notes.last().expect("a note");
    assert!(last.contains("within 5 % of the best"), "{last}");
}

#[test]
fn walks_are_measured_in_each_cache() {
    let report = json(&["bench", "kernels", "--quick", "--rounds", "5", "--backend", "scalar"]);
    let rows = rows(&report, "walks");
    for operation in ["add", "sum"] {
        // Beside the largest caches, memory is named by the bytes that are walked.
        let levels: [&dyn Fn(&str) -> bool; 3] = [&|level| level == "L1", &|level| level == "L2", &|level| {
            level == "memory" || level.ends_with(" MiB")
        }];
        for (level, is_it) in levels.iter().enumerate() {
            let is_level = |row: &&Value| row["level"].as_str().is_some_and(is_it);
            let these = rows.iter().filter(|row| row["operation"] == operation).filter(is_level);
            let walks: Vec<&str> = these
                .inspect(|row| {
                    assert!(positive(row, "megabytes_per_second") > 1.0 && positive(row, "ratio") > 0.0)
                })
                .filter_map(|row| row["walk"].as_str())
                .collect();
            assert_eq!(
                walks,
                ["64", "64-prefetch", "128", "256", "4-registers"],
                "{operation} in level {level}"
            );
        }
    }
}

#[test]
fn windows_cost_what_the_format_says() {
    let report = json(&["bench", "window", "--quick"]);
    let rows = rows(&report, "window");
    let configurations: Vec<(&str, u64, u64)> = rows
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_u64().expect("a number");
            (row["profile"].as_str().expect("a name"), number("window"), number("block"))
        })
        .collect();
    let blocks = [3000, 500, 300, 240].map(|block| ("classic-blocks", 6000, block));
    let sliding = [("classic", 500, 125), ("classic", 3000, 240), ("classic", 6000, 240)];
    let wanted: Vec<_> = sliding.into_iter().chain(blocks).chain([("bounded", 6000, 240)]).collect();
    assert_eq!(configurations, wanted);
    for row in rows {
        assert!(positive(row, "megabits_per_second") > 1.0, "{row}");
        // The encoder counts `observed`, and `budgeted` follows from the specification. They differ because a window
        // shrinks by up to a block, and a lane's part is left to chance.
        let (budgeted, observed) = (positive(row, "budgeted_additions"), positive(row, "observed_additions"));
        assert!((0.85..=1.06).contains(&(observed / budgeted)), "{row}");
        assert!(observed < positive(row, "dense_additions"), "{row}");
    }
}

#[test]
fn streams_tell_what_was_rebuilt_and_what_was_not() {
    let (folder, path) = scratch("trace", b"0000000000 0000000001\n");
    let trace = format!("trace:{}", path.display());
    let report = json(&[
        "bench",
        "stream",
        // A busy machine does not finish all of them in ten seconds; a quiet one need not go on.
        "--budget",
        "25",
        "--rounds",
        "3",
        "--loss",
        &trace,
        "--loss",
        "random:0.1",
        "--loss",
        "burst:1500,7000",
    ]);
    let rows = rows(&report, "stream");
    let of = |profile: &str, loss: &str| {
        let row = rows.iter().find(|row| row["profile"] == profile && row["loss"] == loss);
        row.unwrap_or_else(|| panic!("no {profile} with {loss}"))
    };
    let count = |row: &Value, name: &str| row[name].as_u64().expect("a count");
    for row in rows {
        assert!(positive(row, "encode_megabits_per_second") > 1.0, "{row}");
        assert!(positive(row, "decode_megabits_per_second") > 1.0, "{row}");
        assert_eq!(count(row, "rebuilt") + count(row, "lost_for_good"), count(row, "lost"), "{row}");
    }
    // The burst loses 1286 packets, more than the window's 1000 repair packets can give back.
    let (light, heavy) = (of("bounded", "random:0.1"), of("bounded", "burst:1500,7000"));
    assert!(count(light, "lost") > 1000 && count(light, "lost_for_good") == 0, "{light}");
    assert_eq!(count(light, "ideal_lost_for_good"), 0, "{light}");
    assert!(count(heavy, "lost_for_good") > 1000 && count(heavy, "ideal_lost_for_good") > 1000, "{heavy}");
    assert_eq!(count(of("bounded", &trace), "lost_for_good"), 0);
    let (_, lost) = (folder, count(of("bounded", &trace), "lost"));
    // The trace loses every twentieth transmission. Six in seven are source packets, and 18,000 of those are judged.
    assert!((850..950).contains(&lost), "{lost}");
    let transport = self::rows(&report, "transport");
    assert!(transport.iter().all(|row| positive(row, "packets_per_second") > 1000.0), "{transport:?}");
    let output = fec().args(["bench", "stream", "--loss", "random:2"]).output().expect("fec starts");
    expect(&output, 2);
}

#[test]
fn quick_is_quick_for_every_preset() {
    let (folder, _) = scratch("unused", b"");
    for preset in [
        "reference",
        "kernels",
        "batch",
        "sets",
        "tree",
        "files",
        "roof",
        "model",
        "tuning",
        "window",
        "stream",
        "seal",
        "kem",
    ] {
        let began = Instant::now();
        let mut command = fec();
        command.current_dir(folder.path()).env("COLUMNS", "80");
        let output = command.args(["bench", preset, "--quick", "-j", "1"]).output().expect("fec starts");
        expect(&output, 0);
        // A quiet machine takes ten seconds, but other tests and builds share this one.
        assert!(began.elapsed() < Duration::from_secs(60), "{preset} took {:?}", began.elapsed());
        let printed = text(&output.stdout);
        assert!(printed.lines().any(|line| line.starts_with("backend ")), "{preset}: {printed}");
        // A busy machine without time for the main figures reports that too.
        let is_told = !printed.starts_with("nothing was measured") || printed.contains("the time was up");
        assert!(is_told, "{preset}: {printed}");
        let widest = printed.lines().max_by_key(|line| line.chars().count()).expect("lines");
        assert!(widest.chars().count() <= 80, "{preset}: {widest}");
    }
    assert_eq!(common::listing(folder.path()), ["unused"], "nothing stays behind");
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
    rustix::process::kill_process(pid, common::signals()[0]).expect("it is there");
}

#[test]
fn an_interruption_prints_what_was_measured() {
    let mut command = fec();
    command.args(["bench", "sets", "--budget", "60", "--format", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("fec starts");
    std::thread::sleep(Duration::from_secs(4));
    interrupt(&child);
    let output = common::finish(child, b"", Duration::from_secs(20)).expect("it ends");
    assert_eq!(code(&output), 130);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["interrupted"], true);
    let rows = report["tables"][0]["rows"].as_array().expect("rows").len();
    assert!((1..50).contains(&rows), "{rows} rows");
}
