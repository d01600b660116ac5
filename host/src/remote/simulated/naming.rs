//! The operations that give a file a name: rename in one step or two, posix-rename, hard link.

use russh_sftp::protocol::StatusCode;

use super::answers::{Refusal, refused};
use super::behaviour::{HardLink, RenameOver, RenameSteps};
use super::files::{Files, No, locked, resolve};
use super::handler::Handler;
use super::hooks::{Action, When};
use super::operations::Operation;

impl Handler {
    pub(super) async fn rename_file(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let (from, to) = (resolve(from), resolve(to));
        let index = self.arrived(Operation::Rename { from: from.clone(), to: to.clone() });
        let rename = async {
            let behaviour = self.shared.behaviour();
            if !behaviour.rename_offered {
                return Err(StatusCode::OpUnsupported.into());
            }
            self.at(When::Before, Action::Rename, &to).await?;
            match (behaviour.rename_over, behaviour.rename_steps) {
                (RenameOver::Replaces, _) => self.in_files(|files| files.rename(&from, &to))?,
                (RenameOver::Refuses, RenameSteps::One) => self.in_files(|files| match files.get(&to) {
                    Ok(_) => Err(No::Exists),
                    Err(_) => files.rename(&from, &to),
                })?,
                (RenameOver::Refuses, RenameSteps::LinkThenRemove) => {
                    self.in_files(|files| files.link(&from, &to))?;
                    self.shared.took_effect(index);
                    self.shared.appeared(&to);
                    self.shared.collect(&to);
                    self.at(When::Between, Action::Rename, &to).await?;
                    if let Err(refusal) = self.in_files(|files| files.remove(&from)) {
                        // As OpenSSH does; the partner may have collected the new name meanwhile.
                        let undone = self.in_files(|files| files.remove(&to));
                        tracing::debug!(undone = undone.is_ok(), "the second step of a rename failed");
                        return Err(refusal);
                    }
                }
            }
            self.shared.took_effect(index);
            if behaviour.rename_steps == RenameSteps::One || behaviour.rename_over == RenameOver::Replaces {
                self.shared.appeared(&to);
            }
            self.shared.collect(&to);
            self.at(When::After, Action::Rename, &to).await.map(drop)
        };
        let result = rename.await;
        self.answer(index, result)
    }

    fn in_files<T>(&self, change: impl FnOnce(&mut Files) -> Result<T, No>) -> Result<T, Refusal> {
        change(&mut locked(&self.shared.files)).map_err(refused)
    }

    pub(super) async fn posix_rename(&self, from: &str, to: &str) -> Result<(), Refusal> {
        if !self.shared.behaviour().posix_rename {
            return Err(StatusCode::OpUnsupported.into());
        }
        let (from, to) = (resolve(from), resolve(to));
        let operation = Operation::PosixRename { from: from.clone(), to: to.clone() };
        self.perform(operation, Action::PosixRename, &to, |shared| {
            locked(&shared.files).rename(&from, &to).map_err(refused)?;
            shared.appeared(&to);
            shared.collect(&to);
            Ok(())
        })
        .await
    }

    pub(super) async fn hard_link(&self, from: &str, to: &str) -> Result<(), Refusal> {
        let (from, to) = (resolve(from), resolve(to));
        let index = self.arrived(Operation::Link { from: from.clone(), to: to.clone() });
        let link = async {
            self.at(When::Before, Action::Link, &to).await?;
            match self.shared.behaviour().hard_link {
                HardLink::Honest => {
                    self.in_files(|files| files.link(&from, &to))?;
                    self.shared.took_effect(index);
                    self.shared.appeared(&to);
                    self.shared.collect(&to);
                }
                HardLink::Lies => {}
                HardLink::NotOffered => return Err(StatusCode::OpUnsupported.into()),
            }
            self.at(When::After, Action::Link, &to).await.map(drop)
        };
        let result = link.await;
        self.answer(index, result)
    }
}
