//! Opening an input for restoring and verifying: finds its encodings and chooses one.

use crate::choose::{Choice, choose};
use crate::error::{Action, EncodingError, Error, Place, Result};
use crate::forms::encoded::Encoded;
use crate::forms::form::{Candidate, Found, Seen};
use crate::forms::repair::RepairJob;
use crate::forms::{FORMS, container};
use crate::input::Input;
use crate::leftovers::{Beginning, Leftovers, show_root};
use crate::report::{Examination, Outcome, Restored};
use crate::seal::SealError;
use crate::seal::open::{self, Opener};
use crate::sets::{Nobody, SetWalk, untrue};
use fec_base::context::Context;
use fec_core::Root;
use fec_core::digest::Digest;
use fec_core::format::seal::{Seal, SealedKind};
use fec_core::params::Form;
use fec_core::set::PlanCache;
use fec_keys::age::Keys;
use fec_keys::sign::{Signatures, Signed, Trust};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// An encoding that was found in an input and chosen, ready to be restored or verified.
pub struct Archive {
    found: Vec<Box<dyn Found>>,
    choice: Choice,
    others: Vec<Digest>,
    signatures: Signatures,
    signed: Option<Signed>,
    plans: PlanCache,
    is_one_shard: bool,
    /// The place where the encoding was found.
    pub(crate) place: Place,
}

/// The encoding that the caller wants, of those that an input holds. A root, or `None`, is one too.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Wanted<'a> {
    /// Only the encoding under this root counts.
    pub root: Option<Digest>,
    /// Only encodings count whose root a trusted key signed (docs/FORMAT.md, section 19).
    pub trust: Option<&'a Trust>,
}

impl From<Option<Digest>> for Wanted<'_> {
    fn from(root: Option<Digest>) -> Self {
        Wanted { root, trust: None }
    }
}

impl From<Root> for Wanted<'_> {
    fn from(root: Root) -> Self {
        Some(root.0).into()
    }
}

impl<'a> Wanted<'a> {
    /// The same, but only if a trusted key signed it; `None` asks for no signature.
    pub fn signed_by(self, trust: Option<&'a Trust>) -> Wanted<'a> {
        Wanted { trust, ..self }
    }
}

impl Wanted<'_> {
    /// The signed roots among those found and asked for; none without `trust`.
    fn signed(&self, found: &[Box<dyn Found>], signatures: &Signatures) -> Result<Vec<Signed>> {
        let Some(trust) = self.trust else { return Ok(Vec::new()) };
        let mut known = HashSet::new();
        let candidates = found.iter().flat_map(|found| found.candidates());
        let roots = candidates
            .filter_map(|candidate| candidate.root)
            .filter(|root| self.root.is_none_or(|wanted| wanted == *root) && known.insert(*root));
        let roots: Vec<Digest> = roots.collect();
        if roots.is_empty()
            && (self.root.is_some() || found.iter().all(|found| found.candidates().is_empty()))
        {
            // Nothing here could be signed; the choice reports what is here.
            return Ok(Vec::new());
        }
        trust.check(&roots, signatures).map_err(|cause| Error::new(Action::Read, cause))
    }
}

impl Archive {
    /// Finds the encodings in an input, and chooses the wanted one; if any will do, the only one that can be restored
    /// (docs/FORMAT.md, sections 9.2 and 9.3).
    ///
    /// # Errors
    /// [`NothingFound`](EncodingError::NothingFound), [`Ambiguous`](EncodingError::Ambiguous),
    /// [`NoneWhole`](EncodingError::NoneWhole), and those of the input;
    /// [`Unsigned`](fec_keys::sign::SignError::Unsigned) when a signature is wanted and no root has one.
    pub fn open<'w>(input: &Input, wanted: impl Into<Wanted<'w>>, context: &Context<'_>) -> Result<Archive> {
        let wanted = wanted.into();
        let archive = Archive::looked_up(input, wanted, context)?;
        let is_one_shard = archive.form() == Form::Shards && matches!(input, Input::One(_));
        match archive.root().filter(|_| wanted.trust.is_some() && wanted.root.is_none() && is_one_shard) {
            // A single shard file is read anew under its root, as if the caller had given that root.
            Some(root) => Archive::looked_up(input, Wanted { root: Some(root), ..wanted }, context),
            None => Ok(archive),
        }
    }

    fn looked_up(input: &Input, wanted: Wanted<'_>, context: &Context<'_>) -> Result<Archive> {
        let mut seen = Seen::default();
        let mut found = Vec::new();
        for form in FORMS {
            found.push(form.find(input, &mut seen, wanted.root, context)?);
        }
        let is_one = matches!(input, Input::One(_));
        let opened = Archive::chosen(found, &seen, wanted, is_one && seen.is_wanted, context);
        opened.map(|archive| Archive { place: input.place(), ..archive }).map_err(|mut error| {
            if let Some(EncodingError::NothingFound(found)) = error.cause_mut() {
                // Only the file's header names the wanted root; no shard in it is whole.
                found.is_shard_file =
                    is_one && seen.form == Some(Form::Shards) && found.leftovers.found_wanted;
            }
            error
        })
    }

    /// As [`Archive::open`], for reading a part of the payload. If a root is given and the index at the end of the
    /// container has that root, the rest of the container is not searched. When something that the part needs is
    /// missing there, [`Archive::open`] may still find it elsewhere.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn open_by_index(input: &Input, wanted: Option<Digest>, context: &Context<'_>) -> Result<Archive> {
        match wanted.and_then(|wanted| container::by_index(input, wanted)) {
            Some(found) => {
                let archive = Archive::chosen(vec![found], &Seen::default(), wanted.into(), false, context)?;
                Ok(Archive { place: input.place(), ..archive })
            }
            None => Archive::open(input, wanted, context),
        }
    }

    /// Finds the encodings in a pipe. Its bytes are not kept, so the encoding can be verified but not restored.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn in_pipe<'w>(
        pipe: impl io::Read,
        place: &Path,
        beginning: Beginning,
        wanted: impl Into<Wanted<'w>>,
        context: &Context<'_>,
    ) -> Result<Archive> {
        let wanted = wanted.into();
        let found = container::in_pipe(pipe, place, beginning, wanted.root, context)?;
        Archive::chosen(vec![found], &Seen::default(), wanted, false, context)
    }

    fn chosen(
        found: Vec<Box<dyn Found>>,
        seen: &Seen,
        wanted: Wanted<'_>,
        is_one_shard: bool,
        context: &Context<'_>,
    ) -> Result<Archive> {
        let plans = PlanCache::new(context.settings.backend);
        let check = |encoded: &Encoded<'_>| {
            encoded.check_memory(&context.settings)?;
            SetWalk::new(&context.silent(), &plans).run(encoded.records.as_ref(), &encoded.groups, &Nobody)
        };
        let mut signatures = Signatures::default();
        found.iter().for_each(|found| signatures.absorb(found.signatures().clone()));
        let signed = wanted.signed(&found, &signatures)?;
        let roots: Option<Vec<Digest>> =
            wanted.trust.map(|_| signed.iter().map(|signed| signed.root).collect());
        let root = match roots.as_deref() {
            Some([only]) => Some(*only),
            _ => wanted.root,
        };
        let choice = choose(&found, seen, root, roots.as_deref(), &check)?;
        let root = found[choice.0].candidates()[choice.1].root;
        let all = found.iter().flat_map(|found| found.candidates());
        let others = all.filter(|c| c.has_records && !c.is_in_annexes && c.root != root);
        let others = others.filter_map(|c| c.root).collect();
        let signed = signed.into_iter().find(|signed| Some(signed.root) == root);
        tracing::debug!("{} of root {}", found[choice.0].kind().name(), show_root(root));
        let place = Place::Nowhere;
        Ok(Archive { found, choice, others, signatures, signed, plans, is_one_shard, place })
    }

    fn candidate(&self) -> Candidate {
        self.found[self.choice.0].candidates()[self.choice.1]
    }

    /// The form of the encoding.
    pub fn form(&self) -> Form {
        self.found[self.choice.0].kind()
    }

    /// The root; `None` for a container that was cut and lost its index.
    pub fn root(&self) -> Option<Digest> {
        self.candidate().root
    }

    /// The recorded name: a file name without folders.
    pub fn name(&self) -> Option<Vec<u8>> {
        self.encoded().name().map(<[u8]>::to_vec)
    }

    /// The opener of a sealed payload; `None` if the payload is not sealed.
    ///
    /// # Errors
    /// Those of [`SealError`]: the payload is sealed and these keys do not open it, or keys are
    /// given and the payload is not sealed.
    pub fn opener(&self, keys: Option<&Keys>) -> Result<Option<Opener>> {
        self.opener_of(keys, SealedKind::Payload)
    }

    /// The kind of content that the seal names; `None` if nothing is sealed, or no seal of fec's own is there.
    pub fn sealed_kind(&self) -> Option<SealedKind> {
        let encoded = self.encoded();
        let seal = encoded.meta.filter(|_| encoded.shape().is_sealed())?.seal.as_deref()?;
        Seal::parse(seal).ok().map(|seal| seal.content)
    }

    /// As [`opener`](Archive::opener), for a seal of this kind.
    ///
    /// # Errors
    /// As [`opener`](Archive::opener).
    #[doc(hidden)]
    pub fn opener_of(&self, keys: Option<&Keys>, wanted: SealedKind) -> Result<Option<Opener>> {
        let encoded = self.encoded();
        let opener = open::opener(encoded.shape().is_sealed(), encoded.meta, keys, wanted);
        let opener = opener.map_err(|e| Error::at(Action::Open, self.place.clone(), e))?;
        Ok(opener.map(|opener| opener.of(self.place.clone())))
    }

    /// Fails when the seal is lost, so that nobody could open the restored bytes.
    ///
    /// # Errors
    /// [`SealError::Lost`].
    pub(crate) fn check_seal(&self, encoded: &Encoded<'_>) -> Result<()> {
        match encoded.is_seal_lost() {
            true => Err(Error::at(Action::Open, self.place.clone(), SealError::Lost)),
            false => Ok(()),
        }
    }

    /// Tells whether the payload can be restored; `None` if only decoding tells.
    pub fn is_restorable(&self) -> Option<bool> {
        self.candidate().is_restorable
    }

    /// Tells whether the input is a single shard file of the chosen encoding: such a file can be verified alone.
    pub fn is_one_shard(&self) -> bool {
        self.is_one_shard && self.form() == Form::Shards
    }

    /// The number of shards that have a file; `None` for forms without shard files.
    pub fn given(&self) -> Option<usize> {
        self.found[self.choice.0].given(self.choice.1)
    }

    /// Roots of the other encodings that were found.
    pub fn others(&self) -> &[Digest] {
        &self.others
    }

    /// The files that claim to be shards of the encoding with this root, in order; none for forms without shard files.
    pub fn files_of(&self, root: &Digest) -> Vec<PathBuf> {
        let numbered = |found: &dyn Found| {
            found.candidates().iter().position(|candidate| candidate.root.as_ref() == Some(root))
        };
        let files = self.found.iter().filter_map(|found| Some(found.files(numbered(found.as_ref())?)));
        files.flatten().collect()
    }

    /// All signatures that were found, over any root and unchecked.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// The trusted signer of the root, if one was wanted.
    pub fn signed(&self) -> Option<&Signed> {
        self.signed.as_ref()
    }

    /// Leftovers of the search: whatever belongs to no encoding.
    pub fn leftovers(&self) -> &Leftovers {
        self.found[self.choice.0].leftovers()
    }

    /// The encoding's groups and shards.
    pub fn encoded(&self) -> Encoded<'_> {
        self.found[self.choice.0].encoded(self.choice.1)
    }

    /// Looks at every byte of the chosen encoding.
    ///
    /// # Errors
    /// [`Cancelled`](fec_base::ErrorKind::Cancelled).
    #[doc(hidden)]
    pub fn examine(&self, context: &Context<'_>) -> Result<Examination> {
        let found = self.found[self.choice.0].examine(self.choice.1, context);
        context.check(Action::Verify).map(|()| found)
    }

    pub(crate) fn repair_form(&self, found: &Examination, job: &RepairJob<'_>) -> Result<Vec<PathBuf>> {
        self.found[self.choice.0].repair(self.choice.1, found, job)
    }

    /// Decoding plans, which all operations on the archive share.
    #[doc(hidden)]
    pub fn plans(&self) -> &PlanCache {
        &self.plans
    }

    /// The result of restoring; an error if the root binds a set that breaks a rule.
    pub(crate) fn restored(
        &self,
        encoded: &Encoded<'_>,
        mut outcome: Outcome,
        written: bool,
    ) -> Result<Restored> {
        // The payload before the first known group is lost.
        outcome.lost.add(0, encoded.groups.start());
        if let Some(set) = outcome.untrue {
            return Err(untrue(set));
        }
        Ok(Restored {
            root: encoded.root,
            meta: encoded.meta.cloned(),
            is_sealed: encoded.shape().is_sealed(),
            payload_len: encoded.payload_len,
            opened: None,
            part: None,
            sets: encoded.groups.sets(),
            outcome,
            leftovers: self.leftovers().clone(),
            others: self.others.clone(),
            written,
        })
    }
}

/// Fails when an input that starts like a live stream also holds an encoding that can be restored.
///
/// # Errors
/// [`StreamAndEncodings`](EncodingError::StreamAndEncodings), and those of the input.
pub fn check_only_stream(input: &Input, context: &Context<'_>) -> Result<()> {
    let found = container::Containers.find_restorable(input, &context.silent())?;
    if found.is_empty() {
        return Ok(());
    }
    let Input::One(object) = input else { return Ok(()) };
    Err(Error::at(Action::Decode, object.place.as_path(), EncodingError::StreamAndEncodings(found)))
}
