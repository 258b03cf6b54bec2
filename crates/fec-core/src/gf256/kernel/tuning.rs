//! The settings of kernels for a processor: a table, and the changes that it allows.
//!
//! Settings decide how rows are cut and moved, never the result: the bytes are the same with all of them. Entries of
//! processors that nobody has measured follow from the sizes of their caches.
//!
//! A `Tuning` holds sums, tiles, the prefetch distance, the kind of stores, and the walk of live streams over rows. The
//! table answers by CPUID, or by what the caller knows: an ARM part number, or cache sizes (`fec_base::processor`). A
//! user can change each value by its name. Entries of Sapphire Rapids, Zen 3 and Zen 5 are measured.

use std::fmt;

use super::program::Column;

/// Most columns of a tile of a transform.
pub(super) const MAX_COLUMNS: usize = 32;

/// The kind of stores for large outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Store {
    /// Ordinary stores.
    Plain,
    /// Ordinary stores, after a prefetch of the line to be written.
    Prefetch,
    /// Stores past the caches, on kernels that have them; ordinary stores on others.
    Stream,
}

impl Store {
    /// All kinds.
    pub const ALL: [Store; 3] = [Store::Plain, Store::Prefetch, Store::Stream];

    /// `plain`, `prefetch` or `stream`.
    pub fn name(self) -> &'static str {
        match self {
            Store::Plain => "plain",
            Store::Prefetch => "prefetch",
            Store::Stream => "stream",
        }
    }
}

/// The way of a sum along its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// 64 bytes of each row at a time.
    Line,
    /// 64 bytes at a time; the line 256 bytes ahead is prefetched.
    LinePrefetch,
    /// 128 bytes at a time, with the same prefetch.
    TwoLines,
    /// 256 bytes at a time, with the same prefetch.
    FourLines,
    /// Four registers at a time, by one load where the instruction set has one (`ld1` of NEON).
    FourRegisters,
}

impl Walk {
    /// All walks.
    pub const ALL: [Walk; 5] =
        [Walk::Line, Walk::LinePrefetch, Walk::TwoLines, Walk::FourLines, Walk::FourRegisters];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Walk::Line => "64",
            Walk::LinePrefetch => "64-prefetch",
            Walk::TwoLines => "128",
            Walk::FourLines => "256",
            Walk::FourRegisters => "4-registers",
        }
    }
}

/// The settings of a kernel: an entry of the table of processors, with changes.
///
/// Whatever the settings, results are the same to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuning {
    cpu: &'static Cpu,
    /// Most outputs that a matrix sums at once; no more than registers hold.
    pub(super) sums: usize,
    /// Bytes of source that a tile of a matrix may hold, and of sources and blocks that one of a transform may.
    pub(super) tile: usize,
    /// Most columns of 64 bytes that a tile of a transform holds.
    pub(super) columns: usize,
    /// Bytes between the place in a row that is read and the one that is prefetched; 0 for no prefetch.
    pub(super) prefetch: usize,
    /// The kind of stores for more than `past` bytes of output.
    pub(super) store: Store,
    /// Bytes of output up to which one call stores them by ordinary stores.
    pub(super) past: usize,
    /// The way of live streams over the rows that they add.
    pub(super) walk: Walk,
}

/// A processor: an entry of the table.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Cpu {
    name: &'static str,
    /// KiB of the first data cache and of the second cache of one core.
    caches: (usize, usize),
    /// Settings chosen for it; without them, all follow from the sizes of its caches.
    chosen: Option<Chosen>,
}

/// Settings in place of those that follow from the sizes of caches.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Chosen {
    /// In KiB; the other two are as in [`Tuning`].
    tile: usize,
    columns: usize,
    prefetch: usize,
}

/// For processors whose vectors have 32 bytes at most. Their kernels go over a tile in many short loops, each with a
/// cost at its beginning and its end. Longer tiles save more than they lose by fitting the second cache only. Measured
/// on Zen 3; Zen 2 has the same caches.
const LONG_TILES: Option<Chosen> = Some(Chosen { tile: 96, columns: 16, prefetch: 256 });

/// For Zen 4 and 5, for Haswell and Skylake-X, and for unknown processors of x86-64; measured on Zen 5
/// (`bench/record`). Two thirds of the first cache are too short a tile for the loops. Prefetching costs nothing where
/// rows are in the caches, and cuts the time of 86 + 14 rows that come from memory, as rows of files do, to a third.
const MIDDLE_TILES: Option<Chosen> = Some(Chosen { tile: 48, columns: 16, prefetch: 384 });

const UNKNOWN: Option<Chosen> = if cfg!(target_arch = "x86_64") { MIDDLE_TILES } else { None };

/// The table. `generic` is the first entry.
static CPUS: [Cpu; 15] = [
    Cpu { name: "generic", caches: (32, 512), chosen: UNKNOWN },
    Cpu { name: "haswell", caches: (32, 256), chosen: MIDDLE_TILES },
    Cpu { name: "skylake-x", caches: (32, 1024), chosen: MIDDLE_TILES },
    Cpu { name: "ice-lake", caches: (48, 1280), chosen: None },
    Cpu { name: "sapphire-rapids", caches: (48, 2048), chosen: None },
    Cpu { name: "zen2", caches: (32, 512), chosen: LONG_TILES },
    Cpu { name: "zen3", caches: (32, 512), chosen: LONG_TILES },
    Cpu { name: "zen4", caches: (32, 1024), chosen: MIDDLE_TILES },
    Cpu { name: "zen5", caches: (48, 1024), chosen: MIDDLE_TILES },
    Cpu { name: "cortex-a53", caches: (32, 512), chosen: None },
    Cpu { name: "cortex-a55", caches: (32, 128), chosen: None },
    Cpu { name: "cortex-a72", caches: (32, 1024), chosen: None },
    Cpu { name: "cortex-a76", caches: (64, 512), chosen: None },
    Cpu { name: "neoverse-n1", caches: (64, 1024), chosen: None },
    Cpu { name: "neoverse-v1", caches: (64, 1024), chosen: None },
];

impl Tuning {
    /// The names of all entries of the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CPUS.iter().map(|cpu| cpu.name)
    }

    /// The entry called `name`.
    pub fn named(name: &str) -> Option<Tuning> {
        CPUS.iter().find(|cpu| cpu.name == name).map(Tuning::of)
    }

    /// The entry of an ARM core, by the implementer and the part number of its main identification register (MIDR). A
    /// program cannot read that register itself: Linux prints both in `/proc/cpuinfo`.
    pub fn of_arm_core(implementer: u8, part: u16) -> Tuning {
        let name = match (implementer, part) {
            (0x41, 0xD03) => "cortex-a53",
            (0x41, 0xD05) => "cortex-a55",
            (0x41, 0xD08) => "cortex-a72",
            (0x41, 0xD0B) => "cortex-a76",
            (0x41, 0xD0C) => "neoverse-n1",
            (0x41, 0xD40) => "neoverse-v1",
            _ => "generic",
        };
        Tuning::named(name).expect("it is in the table")
    }

    /// The entry of this processor, as far as CPUID identifies it.
    pub(super) fn of_this_cpu() -> Tuning {
        #[cfg(target_arch = "x86_64")]
        let name = super::isa::x86::identity().entry();
        #[cfg(not(target_arch = "x86_64"))]
        let name = "generic";
        Tuning::named(name).expect("it is in the table")
    }

    fn of(cpu: &'static Cpu) -> Tuning {
        let base = Tuning {
            cpu,
            sums: usize::MAX,
            tile: 0,
            columns: 0,
            prefetch: 384,
            store: if cfg!(target_arch = "x86_64") { Store::Stream } else { Store::Plain },
            past: 0,
            walk: Walk::FourLines,
        };
        let mut tuning = base.with_caches(cpu.caches.0 << 10, cpu.caches.1 << 10);
        if let Some(Chosen { tile, columns, prefetch }) = cpu.chosen {
            (tuning.tile, tuning.columns, tuning.prefetch) = (tile << 10, columns, prefetch);
        }
        tuning
    }

    /// The same settings, with tiles and limits for caches of these sizes in bytes: the first data cache and the second
    /// cache of one core. A size of 0 is unknown, and changes nothing. Tiles that were chosen for the entry stay.
    pub fn with_caches(mut self, first: usize, second: usize) -> Tuning {
        if first > 0 && self.cpu.chosen.is_none() {
            // The rest of the cache is for tables and outputs.
            self.tile = (first / 3 * 2).clamp(TILE.0, TILE.1);
            // With four or eight columns, equal rows of all blocks would compete for the same places.
            self.columns = match first >> 10 {
                ..=16 => 3,
                17..=32 => 5,
                33..=48 => 6,
                _ => 7,
            };
        }
        if second > 0 {
            // This much output has left the second cache before anybody reads it, and an ordinary store would first
            // fetch each line from memory. Reading such outputs back undoes most of the gain, and below this size more
            // than all of it. Measured with second caches of 2 MiB and of 512 KiB: without a limit, the check of a
            // codeword was 12 % slower, and hashing shards gained nothing.
            self.past = (2 * second).max(4 << 20);
        }
        self
    }

    /// The kind of store for a call with so many bytes of output.
    pub(super) fn store_of(self, bytes: usize) -> Store {
        if bytes > self.past { self.store } else { Store::Plain }
    }

    /// Columns of a tile for a transform with this many blocks, on this many lines. Kernels with passes of `two_layers`
    /// go over a tile twice and so begin more loops: for them a column more than fits is a gain.
    pub(super) fn columns_of(self, blocks: usize, lines: usize, two_layers: bool) -> usize {
        // A quarter is for sources. With less than three columns, the beginning of each pass would cost more than
        // blocks that leave the cache.
        let (room, column) = (self.tile / 4 * 3, blocks * size_of::<Column>());
        let fit = if two_layers { room.div_ceil(column) } else { room / column };
        fit.max(3).min(self.columns).min(lines.max(1))
    }

    /// The name of the entry.
    pub fn name(self) -> &'static str {
        self.cpu.name
    }

    /// All settings and their values, as [`changed`](Self::changed) reads them.
    pub fn settings(self) -> impl Iterator<Item = (&'static str, String)> {
        FIELDS.iter().map(move |field| (field.name, (field.get)(&self)))
    }

    /// All settings, with their allowed values in words.
    pub fn allowed() -> impl Iterator<Item = (&'static str, &'static str)> {
        FIELDS.iter().map(|field| (field.name, field.allowed))
    }

    /// The same with changes: `name=value`, several separated by commas, such as `columns=4,store=plain`. The name of
    /// an entry, without a value, takes all of that entry; later changes apply to it.
    ///
    /// # Errors
    ///
    /// [`TuningError`], with the choices there are, when a setting or a value does not exist.
    pub fn changed(mut self, changes: &str) -> Result<Tuning, TuningError> {
        for change in changes.split(',').map(str::trim) {
            let Some((name, value)) = change.split_once('=') else {
                self = Tuning::named(change).ok_or_else(|| TuningError::Entry {
                    name: change.to_owned(),
                    entries: Tuning::names().collect(),
                    settings: FIELDS.iter().map(|field| field.name).collect(),
                })?;
                continue;
            };
            let field =
                FIELDS.iter().find(|field| field.name == name).ok_or_else(|| TuningError::Setting {
                    name: name.to_owned(),
                    settings: FIELDS.iter().map(|field| field.name).collect(),
                })?;
            (field.set)(&mut self, value).ok_or_else(|| TuningError::Value {
                name: field.name,
                value: value.to_owned(),
                allowed: field.allowed,
            })?;
        }
        Ok(self)
    }

    /// Candidates for a search of better settings: a few values for each setting, with all others unchanged. Each comes
    /// with the change that leads to it.
    pub fn neighbours(self) -> impl Iterator<Item = (String, Tuning)> {
        FIELDS.iter().flat_map(move |field| {
            let tried = field.tried.iter().map(move |value| format!("{}={value}", field.name));
            tried.filter_map(move |change| {
                let changed = self.changed(&change).ok()?;
                (changed != self).then_some((change, changed))
            })
        })
    }
}

/// The entry's name, and the settings that differ from it.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cpu.name)?;
        let changed = self.settings().zip(Tuning::of(self.cpu).settings()).filter(|(a, b)| a != b);
        changed.into_iter().try_for_each(|((name, value), _)| write!(f, ",{name}={value}"))
    }
}

/// A setting by its name.
struct Field {
    name: &'static str,
    allowed: &'static str,
    get: fn(&Tuning) -> String,
    /// `None` if the value is not allowed.
    set: fn(&mut Tuning, &str) -> Option<()>,
    /// Values worth trying.
    tried: &'static [&'static str],
}

const TILE: (usize, usize) = (4 << 10, 1 << 20);

/// Reads a whole number within limits.
fn number(text: &str, (least, most): (usize, usize)) -> Option<usize> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

static FIELDS: [Field; 7] = [
    Field {
        name: "sums",
        allowed: "1 to 24, or max",
        get: |tuning| if tuning.sums == usize::MAX { "max".to_owned() } else { tuning.sums.to_string() },
        set: |tuning, value| {
            tuning.sums = if value == "max" { usize::MAX } else { number(value, (1, 24))? };
            Some(())
        },
        tried: &["2", "4", "8", "14", "16", "max"],
    },
    Field {
        name: "tile",
        allowed: "4096 to 1048576 bytes",
        get: |tuning| tuning.tile.to_string(),
        set: |tuning, value| {
            tuning.tile = number(value, TILE)?;
            Some(())
        },
        tried: &["8192", "16384", "21845", "32768", "49152", "65536", "98304", "131072"],
    },
    Field {
        name: "columns",
        allowed: "1 to 32 columns",
        get: |tuning| tuning.columns.to_string(),
        set: |tuning, value| {
            tuning.columns = number(value, (1, MAX_COLUMNS))?;
            Some(())
        },
        tried: &["2", "3", "5", "6", "7", "9", "10", "12", "16", "22", "31"],
    },
    Field {
        name: "prefetch",
        allowed: "0 to 65536 bytes",
        get: |tuning| tuning.prefetch.to_string(),
        set: |tuning, value| {
            tuning.prefetch = number(value, (0, 64 << 10))?;
            Some(())
        },
        tried: &["0", "128", "192", "256", "384", "512", "768", "1024", "2048", "4096"],
    },
    Field {
        name: "store",
        allowed: "plain, prefetch or stream",
        get: |tuning| tuning.store.name().to_owned(),
        set: |tuning, value| {
            tuning.store = Store::ALL.into_iter().find(|store| store.name() == value)?;
            Some(())
        },
        tried: &["plain", "prefetch", "stream"],
    },
    Field {
        name: "past",
        allowed: "a number of bytes",
        get: |tuning| tuning.past.to_string(),
        set: |tuning, value| {
            tuning.past = number(value, (0, usize::MAX))?;
            Some(())
        },
        tried: &["0", "1048576", "4194304", "16777216"],
    },
    Field {
        name: "walk",
        allowed: "64, 64-prefetch, 128, 256 or 4-registers",
        get: |tuning| tuning.walk.name().to_owned(),
        set: |tuning, value| {
            tuning.walk = Walk::ALL.into_iter().find(|walk| walk.name() == value)?;
            Some(())
        },
        // Sets do not use it: `fec bench kernels` compares all walks.
        tried: &[],
    },
];

/// The reason why a text does not change settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// Neither `name=value` nor the name of an entry.
    #[error("{name:?} is no processor of {}, and no setting NAME=VALUE of {}", entries.join(", "), settings.join(", "))]
    Entry {
        /// The name.
        name: String,
        /// The entries there are.
        entries: Vec<&'static str>,
        /// The settings there are.
        settings: Vec<&'static str>,
    },
    /// There is no such setting.
    #[error("there is no setting {name:?}; there are {}", settings.join(", "))]
    Setting {
        /// The name.
        name: String,
        /// The settings there are.
        settings: Vec<&'static str>,
    },
    /// A setting cannot have this value.
    #[error("{name} cannot be {value:?}; it can be {allowed}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The value.
        value: String,
        /// The values it can have.
        allowed: &'static str,
    },
}
