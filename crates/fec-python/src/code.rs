//! Shards alone: a Reed-Solomon code over buffers, without proofs.

use crate::buffers::{bytes_of, new_rows};
use crate::errors::{Damaged, UsageError, no_code};
use fec_base::threads::Threads;
use fec_core::block::{self, Plan};
use fec_core::executor::Executor;
use fec_core::gf256::kernel::Backend;
use fecfile::Settings;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMapping};
use std::sync::Mutex;

/// A Reed-Solomon code: k original shards, which are the data, and m recovery shards. Any k shards restore all others.
///
/// A Code cannot tell a damaged shard from an intact one: leave out shards that may be damaged. `encode_file` and
/// `encode_stream` make shard files and containers, which prove themselves.
///
/// Calls release the GIL, and several threads may use a Code at once. `threads` is the number of threads that a call
/// itself uses.
#[pyclass(frozen, module = "fecshards")]
pub(crate) struct Code {
    code: block::Code,
    encode: Plan,
    backend: Backend,
    threads: usize,
}

/// Available shards, with their numbers.
struct Present {
    indices: Vec<u8>,
    shards: Vec<PyBackedBytes>,
    len: usize,
}

#[pymethods]
impl Code {
    #[new]
    #[pyo3(signature = (k, m, *, threads = 1))]
    fn new(k: usize, m: usize, threads: usize) -> PyResult<Code> {
        let code = block::Code::new(k, m).map_err(no_code)?;
        if threads == 0 {
            return Err(UsageError::new_err("threads is at least 1"));
        }
        let backend = Settings::new().backend;
        Ok(Code { code, encode: Plan::encode(code, backend), backend, threads })
    }

    /// The number of original shards.
    #[getter]
    fn k(&self) -> usize {
        self.code.k()
    }

    /// The number of recovery shards.
    #[getter]
    fn m(&self) -> usize {
        self.code.m()
    }

    /// The number of all shards: k + m.
    #[getter]
    fn n(&self) -> usize {
        self.code.n()
    }

    /// Bytes of each shard that `encode` makes of `length` bytes: a k-th of them, rounded up, and at least 1.
    fn shard_len(&self, length: usize) -> usize {
        length.div_ceil(self.code.k()).max(1)
    }

    /// The n shards of data. The k originals come first: the data cut into pieces, with zeros to fill the last ones.
    /// The m recovery shards follow. Decoding needs the length of the data.
    fn encode<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let data = bytes_of(data)?;
        let len = self.shard_len(data.len());
        new_rows(py, self.code.n(), len, &mut |mut rows| {
            let data = &data[..];
            py.detach(|| {
                let (originals, recovery) = rows.split_at_mut(self.code.k());
                originals
                    .iter_mut()
                    .zip(data.chunks(len))
                    .for_each(|(row, piece)| row[..piece.len()].copy_from_slice(piece));
                let originals: Vec<&[u8]> = originals.iter().map(|row| &**row).collect();
                self.run(&self.encode, &originals, recovery);
            });
            Ok(())
        })
    }

    /// The m recovery shards of k original shards, which all have the same length.
    fn recovery<'py>(
        &self,
        py: Python<'py>,
        originals: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        if originals.len() != self.code.k() {
            let (given, k) = (originals.len(), self.code.k());
            return Err(UsageError::new_err(format!("{given} original shards where there are {k}")));
        }
        let shards = originals.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let indices: Vec<u8> = (0..self.code.k()).map(|index| index as u8).collect();
        let len = common_len(&indices, &shards)?;
        new_rows(py, self.code.m(), len, &mut |mut rows| {
            let originals: Vec<&[u8]> = shards.iter().map(|shard| &shard[..]).collect();
            py.detach(|| self.run(&self.encode, &originals, &mut rows));
            Ok(())
        })
    }

    /// The data from which `encode` made shards, restored from any k of them: a dict from number to bytes. Without
    /// `length` the zeros that filled the last originals are kept.
    #[pyo3(signature = (shards, length = None))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        shards: &Bound<'py, PyMapping>,
        length: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let present = self.present(shards)?;
        let most = self.code.k() * present.len;
        let length = length.unwrap_or(most);
        if length > most {
            return Err(UsageError::new_err(format!(
                "{length} bytes are asked for, and the shards hold {most} at most"
            )));
        }
        PyBytes::new_with(py, length, |out| {
            py.detach(|| self.decode_to(&present, out));
            Ok(())
        })
    }

    /// Makes the shards with the numbers `wanted` anew, originals or recovery shards, in that order, from any k shards.
    fn rebuild<'py>(
        &self,
        py: Python<'py>,
        shards: &Bound<'py, PyMapping>,
        wanted: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let present = self.present(shards)?;
        let wanted = wanted.into_iter().map(|index| self.index(index)).collect::<PyResult<Vec<u8>>>()?;
        let plan = self.plan(&present, &wanted);
        new_rows(py, wanted.len(), present.len, &mut |mut rows| {
            let known: Vec<&[u8]> = present.shards.iter().map(|shard| &shard[..]).collect();
            py.detach(|| self.run(&plan, &known, &mut rows));
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("Code(k={}, m={})", self.code.k(), self.code.m())
    }
}

impl Code {
    fn index(&self, index: usize) -> PyResult<u8> {
        if index >= self.code.n() {
            let last = self.code.n() - 1;
            return Err(UsageError::new_err(format!(
                "there is no shard {index}: they are numbered 0 to {last}"
            )));
        }
        Ok(index as u8)
    }

    /// The first k of the given shards: originals come first, since they take no work.
    fn present(&self, shards: &Bound<'_, PyMapping>) -> PyResult<Present> {
        let mut given = Vec::new();
        for item in shards.items()?.iter() {
            let (index, shard): (usize, Bound<'_, PyAny>) = item.extract()?;
            given.push((self.index(index)?, shard));
        }
        given.sort_by_key(|(index, _)| *index);
        let k = self.code.k();
        if given.len() < k {
            return Err(Damaged::new_err(format!("{} shards are here, and {k} are needed", given.len())));
        }
        let indices: Vec<u8> = given.iter().map(|(index, _)| *index).take(k).collect();
        let shards = given[..k].iter().map(|(_, shard)| bytes_of(shard)).collect::<PyResult<Vec<_>>>()?;
        let len = common_len(&indices, &shards)?;
        Ok(Present { indices, shards, len })
    }

    fn plan(&self, present: &Present, wanted: &[u8]) -> Plan {
        Plan::new(self.code, self.backend, &present.indices, wanted)
            .expect("k distinct shards of the code are known")
    }

    /// Copies the available originals, and computes the others.
    fn decode_to(&self, present: &Present, out: &mut [u8]) {
        let len = present.len;
        let (mut wanted, mut rows, mut cut) = (Vec::new(), Vec::new(), None);
        for (index, piece) in (0u8..).zip(out.chunks_mut(len)) {
            match present.indices.iter().position(|known| *known == index) {
                Some(place) => piece.copy_from_slice(&present.shards[place][..piece.len()]),
                None if piece.len() == len => {
                    wanted.push(index);
                    rows.push(piece);
                }
                None => cut = Some((index, piece)),
            }
        }
        if wanted.is_empty() && cut.is_none() {
            return;
        }
        let mut last = vec![0; if cut.is_some() { len } else { 0 }];
        if let Some((index, _)) = &cut {
            wanted.push(*index);
            rows.push(&mut last);
        }
        let known: Vec<&[u8]> = present.shards.iter().map(|shard| &shard[..]).collect();
        self.run(&self.plan(present, &wanted), &known, &mut rows);
        if let Some((_, piece)) = cut {
            piece.copy_from_slice(&last[..piece.len()]);
        }
    }

    /// Runs a plan on rows of any length, each thread on a part of the columns.
    fn run(&self, plan: &Plan, known: &[&[u8]], wanted: &mut [&mut [u8]]) {
        let len = known.first().map_or(0, |row| row.len());
        let part = len.div_ceil(self.threads).next_multiple_of(64).max(1);
        if part >= len {
            return plan.run_uneven(known, wanted);
        }
        let mut parts: Vec<Vec<&mut [u8]>> = (0..len.div_ceil(part)).map(|_| Vec::new()).collect();
        for row in wanted.iter_mut() {
            parts.iter_mut().zip(row.chunks_mut(part)).for_each(|(rows, piece)| rows.push(piece));
        }
        let parts: Vec<Mutex<Vec<&mut [u8]>>> = parts.into_iter().map(Mutex::new).collect();
        Threads(self.threads).run(parts.len(), &|nth| {
            let start = nth * part;
            let known: Vec<&[u8]> = known.iter().map(|row| &row[start..len.min(start + part)]).collect();
            plan.run_uneven(&known, &mut fec_core::executor::lock(&parts[nth]));
        });
    }
}

/// The common length of all shards.
fn common_len(indices: &[u8], shards: &[PyBackedBytes]) -> PyResult<usize> {
    let len = shards.first().map_or(0, |shard| shard.len());
    if len == 0 {
        return Err(UsageError::new_err("the shards are empty"));
    }
    match indices.iter().zip(shards).find(|(_, shard)| shard.len() != len) {
        None => Ok(len),
        Some((index, shard)) => {
            let other = shard.len();
            let first = indices[0];
            Err(UsageError::new_err(format!("shard {index} has {other} bytes, and shard {first} has {len}")))
        }
    }
}
