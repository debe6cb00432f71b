//! What the demonstrations tell, word for word.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coding_session_mends_what_it_may_and_nothing_else() {
    let (told, summary) = crate::coding_session::story().await;
    assert_eq!(told, include_str!("examples/coding_session.txt"));
    assert_eq!(summary["ok"], true);
    assert_eq!(summary["journal_verified"], true);
}

#[test]
fn two_sleepers_take_turns_in_whatever_order_the_kernel_runs_them() {
    for seed in 0..20 {
        let told = crate::two_sleepers::story(seed);
        assert_eq!(
            told,
            include_str!("examples/two_sleepers.txt"),
            "seed {seed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_preset_gives_what_its_word_says() {
    let told = crate::launch_presets::story().await;
    assert_eq!(told, include_str!("examples/launch_presets.txt"));
}
