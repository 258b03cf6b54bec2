//! The actions that errors name and progress is told of.

use std::fmt;

macro_rules! actions {
    ($($name:ident $words:literal)*) => {
        /// The first words of an error, and the name of a bar of progress.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $(#[doc = concat!("\"", $words, "\".")] $name,)*
        }

        impl Action {
            /// The words.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Action::$name => $words,)*
                }
            }
        }
    };
}

actions! {
    ChooseStreamNumber "choose a stream number"
    Compare "compare"
    Create "create"
    CreateTemporaryFolderIn "create a temporary folder in"
    Decode "decode"
    Encode "encode"
    EncodeStream "encode --stream"
    EncodeTo "encode to"
    Fetch "fetch"
    Forget "forget"
    Hash "hash"
    Keep "keep"
    List "list"
    ListStore "list the store"
    MakeKey "make a key"
    Open "open"
    Protect "protect"
    Read "read"
    ReadKey "read the key"
    ReadManifest "read the manifest"
    ReadPassphrase "read the passphrase"
    ReadPublicKey "read the public key"
    ReadSecretKey "read the secret key"
    ReadSignature "read the signature"
    ReceiveOn "receive on"
    Repair "repair"
    Replace "replace"
    Scan "scan"
    Seal "seal"
    Send "send"
    SendTo "send to"
    Sha256 "sha256"
    Spool "spool"
    StartThread "start a thread"
    Sync "sync"
    Update "update"
    UseState "use the state"
    Verify "verify"
    VerifyState "verify --state"
    Write "write"
    WriteFileIn "write a file in"
    WriteFilesIn "write files in"
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
