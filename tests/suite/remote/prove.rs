//! What a server was shown to do decides the form; what it says about itself decides nothing.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use waybill::job::contract::Contract;
use waybill::job::evidence::PublishForm;
use waybill::job::names::NamePattern;
use waybill::remote::{Proof, RemoteError, ScratchNames, Session, check, choose_form, prove};
use waybill_tests::Sshd;
use waybill_tests::sftp_server::{Action, Behaviour, HardLink, RenameOver, RenameSteps, When};

use super::{Partner, openssh_session};

async fn proof(session: &Session) -> anyhow::Result<Proof> {
    let scratch = ScratchNames::mint(&NamePattern::parse(".{attempt}.part")?, "k.csv")?;
    Ok(prove(session, &scratch).await?)
}

#[tokio::test]
async fn del_05_servers_are_found_out_and_left_clean() -> anyhow::Result<()> {
    let honest = Behaviour::default();
    let replaces = Behaviour { rename_over: RenameOver::Replaces, ..Behaviour::default() };
    let no_link = |behaviour: Behaviour, hard_link| Behaviour { hard_link, ..behaviour };
    let bare = Behaviour { posix_rename: false, hard_link: HardLink::NotOffered, ..Behaviour::default() };
    let rclone = Behaviour { exclusive_create: false, ..no_link(replaces.clone(), HardLink::Lies) };
    let exclusive = Contract { exclusive_create: true, ..Contract::default() };
    for (what, behaviour, contract, plain, over) in [
        ("honest", honest.clone(), Contract::default(), Some(PublishForm::Link), Some(PublishForm::PosixRename)),
        (
            "a link that lies",
            no_link(honest.clone(), HardLink::Lies),
            Contract::default(),
            Some(PublishForm::Rename),
            Some(PublishForm::PosixRename),
        ),
        (
            "a rename in two steps",
            no_link(Behaviour { rename_steps: RenameSteps::LinkThenRemove, ..honest }, HardLink::NotOffered),
            Contract::default(),
            Some(PublishForm::Rename),
            Some(PublishForm::PosixRename),
        ),
        ("bare", bare.clone(), Contract::default(), Some(PublishForm::Rename), None),
        ("rclone", rclone.clone(), exclusive.clone(), None, Some(PublishForm::PosixRename)),
        (
            "replaces, without extensions",
            Behaviour { posix_rename: false, ..no_link(replaces.clone(), HardLink::NotOffered) },
            Contract::default(),
            None,
            Some(PublishForm::RenameOver),
        ),
        (
            "no rename at all",
            Behaviour { rename_offered: false, ..bare },
            exclusive,
            Some(PublishForm::ExclusiveCreate),
            None,
        ),
    ] {
        let partner = Partner::start(behaviour).await?;
        let proof = proof(&partner.session().await?).await?;
        assert_eq!(choose_form(&proof, &contract, false), plain, "{what}: {proof:#?}");
        assert_eq!(choose_form(&proof, &contract, true), over, "{what}: {proof:#?}");
        assert!(partner.server.names_in("").is_empty() && proof.left_behind.is_empty(), "{what}");
        assert_eq!(serde_json::from_value::<Proof>(serde_json::to_value(&proof)?)?, proof);
    }
    Ok(())
}

#[tokio::test]
async fn del_05_a_full_server_is_refused_every_form() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour { capacity_bytes: Some(5), ..Behaviour::default() }).await?;
    assert!(proof(&partner.session().await?).await.is_err());
    assert!(partner.server.names_in("").is_empty(), "what was begun is removed");
    Ok(())
}

#[tokio::test]
async fn del_06_openssh_links_and_refuses() -> anyhow::Result<()> {
    let sshd = Sshd::start().await?;
    let session = openssh_session(&sshd).await?;
    let proof = proof(&session).await?;
    let shown = [
        &proof.size_after_close,
        &proof.create_refuses,
        &proof.link_creates,
        &proof.link_refuses,
        &proof.rename_moves,
        &proof.rename_refuses,
        &proof.posix_rename_replaces,
    ];
    assert!(shown.iter().all(|shown| shown.shown) && !proof.rename_replaces.shown, "{proof:#?}");
    assert_eq!((proof.link_refuses.code, proof.rename_refuses.code), (Some(4), Some(4)));
    assert_eq!(proof.fingerprint, session.server().fingerprint());
    assert_eq!(std::fs::read_dir(sshd.files())?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn del_05_a_check_tells_folders_of_answers_sizes_and_times_each_by_itself() -> anyhow::Result<()> {
    let scratch = ScratchNames::mint(&NamePattern::parse(".{attempt}.part")?, "k.csv")?;
    let checked = async |behaviour: Behaviour, answers: &[&str]| -> anyhow::Result<_> {
        let partner = Partner::start(behaviour).await?;
        partner.server.make_directory("answers")?;
        partner.server.put("answers/yesterday.txt", "ok")?;
        let answers: BTreeSet<String> = answers.iter().map(|folder| (*folder).to_owned()).collect();
        Ok(check(&partner.session().await?, &scratch, &answers, &CancellationToken::new()).await?.seen)
    };
    let listed = async |answers: &[&str]| -> anyhow::Result<_> {
        let seen = checked(Behaviour::default(), answers).await?;
        Ok(seen.lists_answers.map(|shown| (shown.shown, shown.seen)))
    };
    assert_eq!(listed(&[]).await?, None);
    assert_eq!(listed(&["answers"]).await?, Some((true, "answers: 1 entries".to_owned())));
    // One that cannot be listed counts, whatever comes after it.
    for folders in [&["away"][..], &["answers", "away"], &["answers", "away", "zzz"], &[".", "away"]] {
        let (shown, seen) = listed(folders).await?.unwrap_or_default();
        assert!(!shown && seen.starts_with("away: "), "{folders:?}: {seen}");
    }
    for (sizes, times) in [(true, true), (false, true), (true, false)] {
        let seen = checked(Behaviour { sizes, times, ..Behaviour::default() }, &[]).await?;
        assert_eq!((seen.shows.shown, seen.tells_size, seen.tells_time), (true, sizes, times), "{seen:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn del_05_a_check_that_is_asked_to_stop_ends_at_its_next_step_and_leaves_nothing() -> anyhow::Result<()> {
    let scratch = ScratchNames::mint(&NamePattern::parse(".{attempt}.part")?, "k.csv")?;
    // The first write is the look's, the second the proof's.
    for (nth, held) in [("looking", Action::Write), ("proving", Action::Link)] {
        let partner = Partner::start(Behaviour::default()).await?;
        let session = partner.session().await?;
        let (gate, stop) = (partner.server.hold(When::Before, held), CancellationToken::new());
        let no_answers = BTreeSet::new();
        let checking = check(&session, &scratch, &no_answers, &stop);
        let stopping = async {
            gate.reached().await?;
            stop.cancel();
            gate.open();
            anyhow::Ok(())
        };
        let (checked, stopped) = tokio::join!(checking, stopping);
        stopped?;
        assert_eq!(checked, Err(RemoteError::Stopped), "{nth}");
        assert_eq!(partner.server.names_in("/"), [""; 0], "{nth}: scratch files are left");
        let renamed = partner.server.log().iter().any(|logged| format!("{:?}", logged.operation).contains("Rename"));
        assert!(!renamed, "{nth}: it went on to the end");
    }
    Ok(())
}
