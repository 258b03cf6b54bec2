//! The texts below the help of each command and in its manual page: examples and exit codes. Lines have at most 80
//! columns, so no terminal wraps them.

/// The output of `fec` without arguments.
pub(crate) const SHORT: &str = "\
fec protects files and pipes against loss, corruption and tampering.

               fec encode FILE              fec protect PATH
  for          artifacts, several places    folders and files that stay here
  makes        100 shard files, and a root  one sidecar beside them, PATH.fecp
  costs        3 times the size; -r: less   a sixth of the size; -r: less, more
  survives     the loss of any 67 of them   rot, and a gap of nearly as much
  afterwards   fec decode                   fec repair, in place

A file or a pipe as one container, which mends damage on the way:
  tar c photos | fec encode > photos.fec
To check any of them:
  fec verify PATH
How fast this machine is, and what holds it back:
  fec bench --quick

All commands and options:
  fec help
  fec COMMAND --help";

pub(crate) const FEC: &str = "\
Examples:
  fec encode FILE                        100 shard files, and the root
  fec verify FILE.shards --root HEX      is it all there, and the original?
  fec decode FILE.shards --root HEX      FILE again, from any 33 of them

Exit codes:
  0    all that was asked is true (decode may have mended: it says so)
  1    verify: damaged, missing or conflicting shards, but the payload can be
       restored; repair --dry-run: something would be made anew;
       bench --gate: slower than the saved result
  2    wrong use, or refused before any work: the output exists, a terminal,
       ambiguous input
  3    the payload cannot be restored whole (also with --partial, and for gaps
       in a stream); verify --need: too few shards
  4    input or output error; the input changed while it was read
  5    not what the root or the key promises: not a codeword, another root,
       another key; bench --gates: a check failed
  6    refused: a limit, or a version, flag or critical field that this build
       does not know
  130  interrupted; nothing partial is left (bench prints what it has; a live
       stream is ended)";

pub(crate) const ENCODE: &str = "\
Examples:
  fec encode FILE                       100 shard files in FILE.shards/; any 33
                                        restore FILE, and the root is printed
  tar c photos | fec encode > photos.fec            a container, through a pipe
  find data -type f -print0 | fec encode --files-from - -0 -o 'safe/{/}.fec'
                                        a container and a line for each file";

pub(crate) const DECODE: &str = "\
Examples:
  fec decode FILE.shards --root HEX     FILE again, if it is what you encoded
  fec decode photos.fec -o - | tar x    a container, through a pipe
  fec decode FILE.shards --range 1G..+4K -o part     4096 bytes of the payload";

pub(crate) const VERIFY: &str = "\
Examples:
  fec verify FILE.shards --root HEX     is all of it there, and the original?
  fec verify backups *.fecp             a line for each encoding and sidecar
  fec verify photos.fecp photos/2024    a part of what a sidecar protects
  fec encode *.iso -o '{}.shards/' > roots && fec verify --roots roots
                                        a list to check, as sha256sum -c does";

pub(crate) const REPAIR: &str = "\
Examples:
  fec repair FILE.shards --root HEX     make lost and damaged shard files anew
  fec repair photos.fecp -n             what would be mended in photos?
  fec repair photos.fecp photos/2024    a part of photos, and nothing else
  fec repair photos.fecp -o FOLDER      all of photos as it was, in FOLDER
  fec repair photos.fecp --from https://HOST/photos   with a copy of photos";

pub(crate) const PROTECT: &str = "\
Examples:
  fec protect photos                    photos.fecp, beside it
  fec protect -r 5% a.iso b.iso -o isos.fecp       a smaller one, of two files
  fec protect --update photos           protect what changed since, too";

pub(crate) const MANIFEST: &str = "\
Examples:
  fec manifest photos.fecp | b3sum -c           check the files without fec
  fec manifest photos.fecp --sha256          if protect --sha256 recorded them
  fec manifest photos.fecp --root HEX           of this sidecar and no other";

pub(crate) const LIST: &str = "\
Examples:
  fec list s3://BUCKET/PREFIX FOLDER    which encodings are there, and whole?
  fec list @places                      the places in a file, a line each
  fec list @places --json               their roots, for a script";

pub(crate) const FORGET: &str = "\
Examples:
  fec forget --root HEX --from s3://BUCKET/PREFIX --from FOLDER
                                        says what goes, and asks
  fec forget --root HEX --from @places --yes              does not ask";

pub(crate) const REKEY: &str = "\
Examples:
  fec rekey --root HEX --from @places -i mine.key -R team.keys --root-file NEW
                                        for all whose keys are in team.keys
  fec forget --root HEX --from @places  then removes what the others can open";

pub(crate) const ATTEST: &str = "\
Examples:
  fec encode FILE --root-file FILE.root
  fec attest FILE.root > FILE.statement         for cosign attest-blob, and gh
  fec attest FILE.root --check FILE.statement   does it speak of FILE.root?";

pub(crate) const KEYGEN: &str = "\
Examples:
  fec keygen -o key.txt                 prints its recipient, age1..., as in
                                        fec encode FILE --recipient age1...
  fec keygen --sign -o key              for fec encode FILE --sign key, and
                                        fec verify FILE.shards --signer key.pub
  fec keygen --sign --pq -o key         the same, with ML-DSA-65 beside
  fec keygen --stream -o stream.key     for both ends of a live stream";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  source <(fec completions bash)                            in this bash
  fec completions zsh > ~/.zfunc/_fec                       for zsh
  fec completions fish > ~/.config/fish/completions/fec.fish";

pub(crate) const MAN: &str = "\
Examples:
  man <(fec man)                        read it here
  fec man encode > fec-encode.1         the page of a command
  fec man bench-link > fec-bench-link.1";

pub(crate) const BENCH: &str = "\
Examples:
  fec bench --quick                     ten seconds; its first sentence sums up
  fec bench kernels --save before.json  and later: fec bench kernels
                                        --compare before.json --gate 5%
  fec bench --gates                     is what this build computes right?";

pub(crate) const LINK: &str = "\
Examples:
  fec bench link --listen               on one machine, first
  fec bench link HOST -t 10 --mbps 50   on the other
  fec bench link HOST --loss 5%         some packets are lost on purpose";

#[cfg(test)]
mod tests {
    #[test]
    fn no_terminal_of_80_columns_wraps_them() {
        let all = [
            super::SHORT,
            super::FEC,
            super::ENCODE,
            super::DECODE,
            super::VERIFY,
            super::REPAIR,
            super::PROTECT,
            super::MANIFEST,
            super::LIST,
            super::FORGET,
            super::REKEY,
            super::ATTEST,
            super::KEYGEN,
            super::COMPLETIONS,
            super::MAN,
            super::BENCH,
            super::LINK,
        ];
        for line in all.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}
