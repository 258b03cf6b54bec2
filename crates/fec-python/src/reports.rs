//! Results of operations, as Python objects.

use fec_core::params::Form;
use fecfile::report::{self, Deep, ShardState, Verified};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The result of decoding.
#[pyclass(frozen, get_all, module = "fecshards")]
pub(crate) struct Restored {
    root: Option<Root>,
    payload_len: Option<u64>,
    is_whole: bool,
    is_sealed: bool,
    sets: u64,
    mended_sets: u64,
    lost_sets: u64,
    lost: Vec<(u64, u64)>,
}

impl Restored {
    pub(crate) fn new(restored: &report::Restored) -> Restored {
        Restored {
            root: restored.root.map(Root),
            payload_len: restored.opened.or(restored.payload_len),
            is_whole: restored.is_whole(),
            is_sealed: restored.is_sealed,
            sets: restored.sets,
            mended_sets: restored.outcome.mended_sets,
            lost_sets: restored.outcome.lost_sets,
            lost: restored.outcome.lost.list().iter().map(|range| (range.start, range.end)).collect(),
        }
    }
}

#[pymethods]
impl Restored {
    fn __repr__(&self) -> String {
        let Restored { sets, mended_sets, lost_sets, .. } = self;
        format!(
            "Restored(is_whole={}, sets={sets}, mended_sets={mended_sets}, lost_sets={lost_sets})",
            python(self.is_whole)
        )
    }
}

/// The findings about one shard.
#[pyclass(frozen, get_all, module = "fecshards")]
pub(crate) struct Shard {
    index: u32,
    state: &'static str,
    files: Vec<String>,
    damage: Vec<String>,
}

#[pymethods]
impl Shard {
    fn __repr__(&self) -> String {
        format!("Shard(index={}, state={:?})", self.index, self.state)
    }
}

/// The findings about an encoding.
#[pyclass(frozen, get_all, module = "fecshards")]
pub(crate) struct Report {
    form: &'static str,
    root: Option<Root>,
    k: usize,
    m: usize,
    payload_len: Option<u64>,
    is_sealed: bool,
    is_intact: bool,
    is_restorable: Option<bool>,
    may_still_lose: Option<u32>,
    is_proved: Option<bool>,
    shards: Vec<Py<Shard>>,
    damage: Vec<String>,
}

impl Report {
    pub(crate) fn new(py: Python<'_>, verified: &Verified) -> PyResult<Report> {
        let shards = verified.found.shards.iter().map(|shard| {
            let state = match shard.state {
                ShardState::Intact => "intact",
                ShardState::Damaged => "damaged",
                ShardState::Missing => "missing",
            };
            let damage = shard.damage.iter().map(|damage| {
                let places = damage.bytes.iter().map(|range| format!("{}..{}", range.start, range.end));
                format!("{}: {} at {}", damage.file, damage.what, places.collect::<Vec<_>>().join(", "))
            });
            Py::new(
                py,
                Shard { index: shard.index, state, files: shard.files.clone(), damage: damage.collect() },
            )
        });
        Ok(Report {
            form: match verified.form {
                Form::Shards => "shards",
                // A sidecar is no archive: an archive opened from one is its recovery data, which has the form of a
                // container.
                Form::Container | Form::Sidecar => "container",
            },
            root: verified.root.map(Root),
            k: verified.shape.code.k(),
            m: verified.shape.code.m(),
            payload_len: verified.payload_len,
            is_sealed: verified.shape.is_sealed(),
            is_intact: verified.is_intact(),
            is_restorable: verified.is_restorable,
            may_still_lose: verified.may_still_lose(),
            is_proved: match verified.deep {
                Deep::NotAsked => None,
                Deep::Proved => Some(true),
                Deep::Failed => Some(false),
            },
            shards: shards.collect::<PyResult<_>>()?,
            damage: verified.found.damage.clone(),
        })
    }
}

#[pymethods]
impl Report {
    fn __repr__(&self) -> String {
        let restorable = self.is_restorable.map_or("None", python);
        let Report { form, k, m, .. } = self;
        format!(
            "Report(form={form:?}, k={k}, m={m}, is_intact={}, is_restorable={restorable})",
            python(self.is_intact)
        )
    }
}

/// The result of a repair.
#[pyclass(frozen, get_all, module = "fecshards")]
pub(crate) struct Repaired {
    pub(crate) root: Root,
    pub(crate) files: Vec<std::path::PathBuf>,
    pub(crate) written: bool,
}

#[pymethods]
impl Repaired {
    fn __repr__(&self) -> String {
        format!("Repaired(files={}, written={})", self.files.len(), python(self.written))
    }
}

/// A root, which is `bytes` in Python.
#[derive(Clone, Copy)]
pub(crate) struct Root(pub(crate) [u8; 32]);

impl<'py> IntoPyObject<'py> for Root {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

fn python(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
