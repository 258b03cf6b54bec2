//! Settings change how rows are moved, never the result.

use fec_core::block::{Code, Engine, Plan};
use fec_core::gf256::kernel::{Backend, Tuning, TuningError};

use super::{assert_restores, encoded, originals_and_recovery, plans, scalar};

/// Every entry of the table, and every value that a search tries, on rows cut in all ways.
#[test]
fn bytes_are_the_same_with_all_settings() {
    for (k, m, lines) in [(33, 67, 67), (10, 4, 150), (86, 14, 33), (3, 40, 1)] {
        let code = Code::new(k, m).unwrap();
        let set = encoded(code, lines * 64, scalar());
        let (known, wanted) = originals_and_recovery(code);
        for backend in Backend::available().filter(|backend| *backend != scalar()) {
            let entries = Tuning::names().map(|name| Tuning::named(name).unwrap());
            let mut tunings: Vec<Tuning> = entries.collect();
            tunings.extend(backend.tuning().neighbours().map(|(_, tuning)| tuning));
            // Small sets are stored like large ones.
            for store in ["plain", "prefetch", "stream"] {
                let change = format!("past=0,store={store},prefetch=4096");
                tunings.push(backend.tuning().changed(&change).unwrap());
            }
            tunings.push(backend.tuning().changed("sums=5,tile=4096,columns=1,prefetch=0").unwrap());
            tunings.push(backend.tuning().changed("sums=1,tile=1048576,columns=32,prefetch=65536").unwrap());
            for tuning in tunings {
                for plan in plans(code, backend.with_tuning(tuning), &known, &wanted) {
                    assert_restores(&plan, &set);
                }
            }
        }
    }
}

#[test]
fn settings_are_read_as_they_are_written() {
    let base = Tuning::named("zen4").unwrap();
    assert_eq!(base.to_string(), "zen4");
    let changed = base.changed("columns=4, store=prefetch,sums=max").unwrap();
    assert_eq!(changed.to_string(), "zen4,columns=4,store=prefetch");
    assert_eq!(base.changed("walk=64-prefetch").unwrap().to_string(), "zen4,walk=64-prefetch");
    assert_eq!(base.changed("walk=256"), Ok(base));
    assert_eq!(base.changed(&changed.to_string()), Ok(changed));
    let every: Vec<String> = changed.settings().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(base.changed(&every.join(",")), Ok(changed));
    assert_eq!(base.changed("tile=8192,cortex-a53"), Ok(Tuning::named("cortex-a53").unwrap()));
    assert_eq!(Tuning::of_arm_core(0x41, 0xD03).name(), "cortex-a53");
    assert_eq!(Tuning::of_arm_core(0x42, 0xD03).name(), "generic");
    for (change, name) in base.neighbours().map(|(change, tuning)| (change, tuning.to_string())) {
        assert_eq!(name, format!("zen4,{change}"));
    }
}

#[test]
fn what_cannot_be_set_is_said() {
    let base = Tuning::named("generic").unwrap();
    let refused = |change: &str| base.changed(change).unwrap_err();
    assert!(matches!(refused("pentium"), TuningError::Entry { entries, .. } if entries.contains(&"zen4")));
    assert!(matches!(refused(""), TuningError::Entry { .. }));
    assert!(
        matches!(refused("tiles=1"), TuningError::Setting { settings, .. } if settings.contains(&"tile"))
    );
    for change in [
        "tile=4095",
        "tile=x",
        "tile=",
        "columns=0",
        "columns=33",
        "store=fast",
        "sums=25",
        "past=-1",
        "walk=32",
    ] {
        let (name, value) = change.split_once('=').unwrap();
        let error = refused(change);
        assert!(
            matches!(error, TuningError::Value { name: n, value: ref v, .. } if (n, &v[..]) == (name, value))
        );
        assert!(error.to_string().contains("it can be"), "{error}");
    }
}

/// Known caches decide the tiles; unknown ones change nothing.
#[test]
fn tiles_follow_the_caches() {
    let base = Tuning::named("cortex-a53").unwrap();
    assert_eq!(base.with_caches(0, 0), base);
    let larger = base.with_caches(64 << 10, 4 << 20);
    assert_eq!(larger.to_string(), "cortex-a53,tile=43690,columns=7,past=8388608");
    assert_eq!(base.with_caches(48 << 10, 0).to_string(), "cortex-a53,tile=32768,columns=6");
    // Tiles chosen for an entry stay.
    let chosen = Tuning::named("zen3").unwrap().with_caches(64 << 10, 4 << 20);
    assert_eq!(chosen.to_string(), "zen3,past=8388608");
}

/// Caches of plans distinguish backends with different settings.
#[test]
fn settings_belong_to_the_backend() {
    let backend = Backend::best();
    let other = backend.with_tuning(backend.tuning().changed("columns=2").unwrap());
    assert_ne!(backend, other);
    assert_eq!(backend.name(), other.name());
    let code = Code::new(33, 67).unwrap();
    let plan = Plan::encode(code, other);
    assert_eq!((plan.backend(), plan.engine()), (other, Engine::Fft));
}
