//! Who vouches for the journal's end: an Ed25519 key and the head that it signed last, both away
//! from the data directory, so that whoever can change the journal cannot change what is said of it.
//!
//! The key is in the system's keyring; where there is none, in a file that only its owner may read.
//! Its public half is beside the configuration: a journal is checked without the key itself.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steward_kernel::audit::chain::{Head, Sealed};
use steward_kernel::escape::shown;
use steward_kernel::provider::{Judgement, Witness};
use steward_kernel::{Code, SysError};

use crate::paths::{Paths, make_private};
use crate::surface::{Check, CheckState};

/// How long the keyring may take: it may ask the person to unlock it, and nobody may be there.
const PATIENCE: Duration = Duration::from_secs(3);
/// What the keyring knows the key by, with the folder of the configuration.
const SERVICE: &str = "steward";

/// A store of secrets.
trait Safe {
    /// The secret, if there is one.
    fn get(&self) -> Result<Option<Vec<u8>>, String>;
    fn put(&self, secret: &[u8]) -> Result<(), String>;
}

/// Where the key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Keyring,
    File,
}

/// What is kept of the key beside the configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Public {
    key: String,
    kept_in: Place,
}

/// The journal's witness of one data directory.
pub(crate) struct KeyWitness {
    folder: PathBuf,
    head: PathBuf,
    public: VerifyingKey,
    place: Place,
    /// Why the keyring does not have the key, where it does not.
    why_not_keyring: Option<String>,
    /// The key, or why it cannot be reached: then nothing is signed, and all is still checked.
    key: Result<SigningKey, String>,
}

impl KeyWitness {
    /// The witness of a data directory; a key is made where there is none yet.
    pub(crate) fn open(paths: &Paths) -> Result<Self, SysError> {
        let folder = folder(paths);
        let name = format!("journal of {}", folder.display());
        Self::open_with(&folder, &paths.data, &Keyring { name })
    }

    fn open_with(folder: &Path, data: &Path, keyring: &dyn Safe) -> Result<Self, SysError> {
        let heads = folder.join("heads");
        make_private(folder)
            .and_then(|()| make_private(&heads))
            .map_err(|e| unusable(folder, &e.to_string()))?;
        let file = Secret(folder.join("key"));
        let (public, place, key, why_not_keyring) = match read(&folder.join("public.json"))? {
            Some(public) => known(folder, &public, keyring, &file)?,
            None => made(folder, keyring, &file)?,
        };
        Ok(Self {
            folder: folder.to_owned(),
            head: heads.join(format!("{}.json", name_of(data))),
            public,
            place,
            why_not_keyring,
            key,
        })
    }

    /// What `steward doctor` tells.
    pub(crate) fn check(&self) -> Check {
        let folder = shown(&self.folder.to_string_lossy());
        let (state, found, hint) = match (&self.key, self.place) {
            (Ok(_), Place::Keyring) => (
                CheckState::Works,
                "the journal is signed by a key in the system's keyring".to_owned(),
                None,
            ),
            (Ok(_), Place::File) => (
                CheckState::Limited,
                format!(
                    "the journal is signed by a key in the file `{folder}/key`: {}",
                    self.why_not_keyring
                        .as_deref()
                        .unwrap_or("it was made there")
                ),
                Some(format!(
                    "start a keyring service and move `{folder}` away, and a new key goes there"
                )),
            ),
            (Err(why), place) => (
                CheckState::Missing,
                format!("the journal is not signed: {why}"),
                Some(match place {
                    Place::Keyring => format!(
                        "unlock the keyring; where its key is lost, move `{folder}` away for a new one"
                    ),
                    Place::File => {
                        format!("put the file back, or move `{folder}` away for a new key")
                    }
                }),
            ),
        };
        Check {
            name: "journal key".to_owned(),
            state,
            found,
            hint,
        }
    }
}

/// The check of [`KeyWitness::check`], where no kernel runs here.
pub(crate) fn check(paths: &Paths) -> Check {
    match KeyWitness::open(paths) {
        Ok(witness) => witness.check(),
        Err(error) => Check {
            name: "journal key".to_owned(),
            state: CheckState::Missing,
            found: error.message,
            hint: error.hint,
        },
    }
}

impl Witness for KeyWitness {
    fn seal(&self, head: &Head) -> Result<Option<Sealed>, SysError> {
        let Ok(key) = &self.key else {
            return Ok(None);
        };
        let sealed = Sealed {
            head: *head,
            key: hex::encode(self.public.as_bytes()),
            signature: hex::encode(key.sign(&head.statement()).to_bytes()),
        };
        write(&self.head, &json(&sealed)?).map_err(|e| unusable(&self.head, &e.to_string()))?;
        Ok(Some(sealed))
    }

    fn last(&self) -> Result<Option<Sealed>, SysError> {
        read(&self.head)
    }

    fn judge(&self, sealed: &Sealed) -> Judgement {
        if sealed.key != hex::encode(self.public.as_bytes()) {
            return Judgement::OtherKey;
        }
        let mut bytes = [0; 64];
        let signed = hex::decode_to_slice(&sealed.signature, &mut bytes).is_ok()
            && self
                .public
                .verify_strict(&sealed.head.statement(), &Signature::from_bytes(&bytes))
                .is_ok();
        if signed {
            Judgement::Genuine
        } else {
            Judgement::Forged
        }
    }
}

type Found = (
    VerifyingKey,
    Place,
    Result<SigningKey, String>,
    Option<String>,
);

/// The key that was made before.
fn known(
    folder: &Path,
    public: &Public,
    keyring: &dyn Safe,
    file: &dyn Safe,
) -> Result<Found, SysError> {
    let mut bytes = [0; 32];
    let public_key = hex::decode_to_slice(&public.key, &mut bytes)
        .map_err(|e| e.to_string())
        .and_then(|()| VerifyingKey::from_bytes(&bytes).map_err(|e| e.to_string()))
        .map_err(|e| unusable(&folder.join("public.json"), &e))?;
    let (safe, place): (&dyn Safe, _) = match public.kept_in {
        Place::Keyring => (keyring, "the keyring"),
        Place::File => (file, "its file"),
    };
    let key = match safe.get() {
        Ok(Some(secret)) => key_of(&secret)
            .filter(|key| key.verifying_key() == public_key)
            .ok_or_else(|| format!("the key in {place} is another one")),
        Ok(None) => Err(format!("the key is not in {place} any more")),
        Err(why) => Err(format!("the key in {place} cannot be read: {why}")),
    };
    Ok((public_key, public.kept_in, key, None))
}

/// A new key, in the keyring if there is one.
fn made(folder: &Path, keyring: &dyn Safe, file: &dyn Safe) -> Result<Found, SysError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|e| SysError::new(Code::Unavailable, format!("no randomness: {e}")))?;
    let key = SigningKey::from_bytes(&secret);
    let kept = keyring.put(&secret).and_then(|()| match keyring.get()? {
        Some(found) if found == secret => Ok(()),
        _ => Err("it does not keep what it is given".to_owned()),
    });
    let (place, why_not) = match kept {
        Ok(()) => (Place::Keyring, None),
        Err(why) => {
            file.put(&secret).map_err(|e| unusable(folder, &e))?;
            (Place::File, Some(why))
        }
    };
    let public = Public {
        key: hex::encode(key.verifying_key().as_bytes()),
        kept_in: place,
    };
    let at = folder.join("public.json");
    write(&at, &json(&public)?).map_err(|e| unusable(&at, &e.to_string()))?;
    Ok((key.verifying_key(), place, Ok(key), why_not))
}

fn key_of(secret: &[u8]) -> Option<SigningKey> {
    Some(SigningKey::from_bytes(secret.try_into().ok()?))
}

/// The system's keyring (Secret Service, Keychain, Credential Manager).
struct Keyring {
    name: String,
}

impl Keyring {
    /// Asks the keyring on a thread of its own: it may wait for a person who is not there.
    fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&keyring::Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        if std::env::var_os("STEWARD_KEYRING").is_some_and(|v| v == "off") {
            return Err("STEWARD_KEYRING is `off`".to_owned());
        }
        let (answer, answered) = mpsc::channel();
        let name = self.name.clone();
        std::thread::spawn(move || {
            let told = match keyring::Entry::store_status() {
                Ok(()) => keyring::Entry::new(SERVICE, &name)
                    .and_then(|entry| ask(&entry))
                    .map_err(|e| e.to_string()),
                Err(e) => Err(format!("there is no keyring: {e}")),
            };
            let _asked_no_more = answer.send(told);
        });
        answered
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| Err("the keyring does not answer".to_owned()))
    }
}

impl Safe for Keyring {
    fn get(&self) -> Result<Option<Vec<u8>>, String> {
        self.ask(|entry| match entry.get_secret() {
            Ok(secret) => Ok(Some(secret)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(e) => Err(e),
        })
    }

    fn put(&self, secret: &[u8]) -> Result<(), String> {
        let secret = secret.to_owned();
        self.ask(move |entry| entry.set_secret(&secret))
    }
}

/// A file that only its owner may read.
struct Secret(PathBuf);

impl Safe for Secret {
    fn get(&self) -> Result<Option<Vec<u8>>, String> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => hex::decode(text.trim())
                .map(Some)
                .map_err(|e| e.to_string()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }

    fn put(&self, secret: &[u8]) -> Result<(), String> {
        write(&self.0, hex::encode(secret).as_bytes()).map_err(|e| e.to_string())
    }
}

fn folder(paths: &Paths) -> PathBuf {
    let config = paths.config.parent().unwrap_or(&paths.config);
    config.join("witness")
}

/// A name for the heads of one data directory among those of others.
fn name_of(data: &Path) -> String {
    let whole = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let digest = Sha256::digest(whole.as_os_str().as_encoded_bytes());
    hex::encode(&digest[..16])
}

/// Reads JSON; nothing where there is no file.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, SysError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unusable(path, &e.to_string())),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|e| unusable(path, &e.to_string()))
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, SysError> {
    serde_json::to_vec(value).map_err(|e| SysError::new(Code::Internal, e.to_string()))
}

/// Puts a file there whole or not at all, for its owner only.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}

fn unusable(path: &Path, why: &str) -> SysError {
    let shown = shown(&path.to_string_lossy());
    SysError::new(Code::Unavailable, format!("cannot use `{shown}`: {why}"))
        .hint("check who owns the configuration's folder; move that file away to start anew")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::cell::RefCell;
    use std::os::unix::fs::PermissionsExt;

    use steward_kernel::audit::chain::Hash;

    use super::*;

    /// A keyring in memory, which may be away.
    #[derive(Default)]
    struct Memory {
        secret: RefCell<Option<Vec<u8>>>,
        away: bool,
    }

    impl Safe for Memory {
        fn get(&self) -> Result<Option<Vec<u8>>, String> {
            if self.away {
                return Err("locked".to_owned());
            }
            Ok(self.secret.borrow().clone())
        }

        fn put(&self, secret: &[u8]) -> Result<(), String> {
            if self.away {
                return Err("locked".to_owned());
            }
            *self.secret.borrow_mut() = Some(secret.to_owned());
            Ok(())
        }
    }

    struct Bed {
        root: tempfile::TempDir,
    }

    impl Bed {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir(root.path().join("data")).unwrap();
            Self { root }
        }

        fn witness(&self, keyring: &dyn Safe) -> KeyWitness {
            let data = self.root.path().join("data");
            KeyWitness::open_with(&self.folder(), &data, keyring).unwrap()
        }

        fn folder(&self) -> PathBuf {
            self.root.path().join("config/witness")
        }
    }

    fn head(sequence: u64) -> Head {
        Head {
            segment: 1,
            sequence,
            count: sequence,
            hash: Hash([7; 32]),
        }
    }

    #[test]
    fn a_key_in_the_keyring_leaves_no_secret_in_a_file() {
        let (bed, keyring) = (Bed::new(), Memory::default());
        let witness = bed.witness(&keyring);
        assert_eq!(witness.check().state, CheckState::Works);
        let sealed = witness.seal(&head(3)).unwrap().unwrap();
        assert!(!bed.folder().join("key").exists());
        let again = bed.witness(&keyring);
        assert_eq!(again.last().unwrap().unwrap(), sealed);
        assert_eq!(again.judge(&sealed), Judgement::Genuine);
        let changed = Sealed {
            head: head(4),
            ..sealed.clone()
        };
        assert_eq!(again.judge(&changed), Judgement::Forged);
        let other = Bed::new().witness(&Memory::default());
        assert_eq!(other.judge(&sealed), Judgement::OtherKey);
    }

    #[test]
    fn without_a_keyring_the_key_is_in_a_file_for_its_owner_only() {
        let bed = Bed::new();
        let away = Memory {
            away: true,
            ..Memory::default()
        };
        let witness = bed.witness(&away);
        let check = witness.check();
        assert_eq!(check.state, CheckState::Limited);
        assert!(check.found.contains("locked"), "{}", check.found);
        let mode = |name: &str| {
            let path = bed.folder().join(name);
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(mode("key"), 0o600);
        assert_eq!(mode(""), 0o700);
        let sealed = witness.seal(&head(1)).unwrap().unwrap();
        // The keyring is there later: the key that was made stays.
        assert_eq!(
            bed.witness(&Memory::default()).judge(&sealed),
            Judgement::Genuine
        );
    }

    #[test]
    fn a_key_that_cannot_be_reached_signs_nothing_and_still_checks() {
        let (bed, keyring) = (Bed::new(), Memory::default());
        let sealed = bed.witness(&keyring).seal(&head(1)).unwrap().unwrap();
        let locked = Memory {
            away: true,
            ..keyring
        };
        let witness = bed.witness(&locked);
        assert_eq!(witness.check().state, CheckState::Missing);
        assert_eq!(witness.seal(&head(2)).unwrap(), None);
        assert_eq!(witness.last().unwrap(), Some(sealed.clone()));
        assert_eq!(witness.judge(&sealed), Judgement::Genuine);
        let other = Memory::default();
        other.put(&[9; 32]).unwrap();
        let check = bed.witness(&other).check();
        assert!(check.found.contains("another one"), "{}", check.found);
    }

    #[test]
    fn a_torn_head_is_an_error_and_not_no_head() {
        let (bed, keyring) = (Bed::new(), Memory::default());
        let witness = bed.witness(&keyring);
        assert_eq!(witness.last().unwrap(), None);
        witness.seal(&head(1)).unwrap();
        let text = std::fs::read_to_string(&witness.head).unwrap();
        std::fs::write(&witness.head, &text[..text.len() / 2]).unwrap();
        let error = witness.last().unwrap_err();
        assert!(error.message.contains("cannot use"), "{error}");
    }

    #[test]
    fn heads_of_two_data_directories_stay_apart() {
        let (bed, keyring) = (Bed::new(), Memory::default());
        bed.witness(&keyring).seal(&head(9)).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let other = KeyWitness::open_with(&bed.folder(), elsewhere.path(), &keyring).unwrap();
        assert_eq!(other.last().unwrap(), None);
    }
}
