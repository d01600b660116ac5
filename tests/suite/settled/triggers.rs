//! Agreed trigger files: without a confirmed one the outcome is unknown, and nobody but a person sends it later.

use waybill::job::status::{EventKind, Status};
use waybill_tests::Plan;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, HardLink, RenameOver, When};

use super::replacements::reconciled_to_completed;
use super::{COMPLETED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// A done-file that the partner acts on. Everything else is promised and read back, so that nothing but the trigger can
/// keep a delivery from being Completed. A file that is created exclusively is seen to grow, so that nobody promises it whole.
fn triggered(form: &str) -> Plan {
    let promised =
        if form == EXCLUSIVE { ONE_STEP.replace("publishes_whole = true\n", "") } else { ONE_STEP.to_owned() };
    let contract = format!("{promised}\n{form}\n[[contract.auxiliary]]\nname = '{{final}}.done'\ntrigger = true");
    let plan = agreed(&contract);
    Plan {
        manifest: plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1"),
        destination: "settings = { name = 'contacts-{key}.csv', query = 'rows', done_file = '{final}.done' }\n"
            .to_owned(),
        ..plan
    }
}

const EXCLUSIVE: &str = "exclusive_create = true";

/// A server on which nothing but an exclusive create refuses an existing name.
fn only_creates() -> Behaviour {
    Behaviour { hard_link: HardLink::NotOffered, rename_over: RenameOver::Replaces, ..Behaviour::default() }
}

fn forms() -> [(Behaviour, &'static str); 2] {
    [(renames(), ""), (only_creates(), EXCLUSIVE)]
}

impl Silent {
    /// How often the server was asked to create the trigger, answered or not.
    fn triggers(&self) -> usize {
        self.server.times_created(&format!("{}.done", self.name()))
    }

    /// Later looks leave the outcome open and send no trigger; a person's word settles it, and sends none either.
    async fn only_a_person_settles_it(&self, triggers: usize) -> anyhow::Result<()> {
        for _ in 0..2 {
            self.looked().await?;
            assert_eq!((self.stands().await?, self.triggers()), (UNKNOWN, triggers), "a later look");
        }
        reconciled_to_completed(self).await?;
        assert_eq!((self.stands().await?, self.triggers()), (COMPLETED, triggers));
        assert_eq!(self.server.times_created(&self.name()), 1);
        Ok(())
    }
}

#[tokio::test]
async fn vrd_04_del_10_with_its_trigger_confirmed_the_same_delivery_is_completed() -> anyhow::Result<()> {
    for (behaviour, form) in forms() {
        let silent = Silent::ended(behaviour, triggered(form), |_, _| None).await?;
        assert_eq!((silent.stands().await?, silent.triggers()), (COMPLETED, 1), "{form}");
    }
    Ok(())
}

#[tokio::test]
async fn vrd_04_a_published_file_whose_trigger_is_not_confirmed_is_unknown_until_a_person_settles_it()
-> anyhow::Result<()> {
    let [renamed, created] = forms();
    for ((behaviour, form), when, fault) in [
        (renamed.clone(), When::Before, Fault::refuse(4, "not today")),
        // The trigger is there, empty, and its answer is lost.
        (renamed, When::After, Fault::Cut),
        (created, When::Before, Fault::Cut),
    ] {
        let place = format!("{form} {when:?} {fault:?}");
        let silent = Silent::ended(behaviour, triggered(form), move |name, event| {
            let trigger = event.path.strip_suffix(".done").is_some_and(|path| path.ends_with(name));
            (trigger && event.when == when && event.action == Action::Open).then(|| fault.clone())
        })
        .await?;
        assert_eq!((silent.stands().await?, silent.triggers()), (UNKNOWN, 1), "{place}");
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "trigger_not_confirmed", "{place}");
        assert!(silent.server.read(&silent.name()).is_some(), "{place}: the file itself is published");
        silent.only_a_person_settles_it(1).await?;
    }
    Ok(())
}

#[tokio::test]
async fn vrd_04_a_final_name_whose_worker_died_before_the_trigger_is_unknown_until_a_person_settles_it()
-> anyhow::Result<()> {
    for ((behaviour, form), action) in forms().into_iter().zip([Action::Rename, Action::Close]) {
        let mut silent = Silent::at(behaviour, triggered(form), When::After, action).await?;
        let there = silent.server.read(&silent.name()).unwrap_or_default();
        let expected = silent.house.job(silent.job).await?.expected.map(|file| file.bytes);
        assert_eq!(Some(u64::try_from(there.len())?), expected, "{form}: the whole file is there");
        assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown, "{form}");
        let proof = silent.detail(EventKind::ResolvedByRecovery).await?;
        assert_eq!(proof["proof"]["conclusion"], "trigger_not_confirmed", "{form}");
        let worker = silent.house.worker().await?;
        std::mem::replace(&mut silent.worker, worker).crash();
        silent.only_a_person_settles_it(0).await?;
    }
    Ok(())
}
