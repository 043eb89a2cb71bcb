import StrataLocks

/// Judges what a context shows that follows saves: nothing older than what had been saved before it was asked.
///
/// It may show a newer value. It need not have followed a batch, or what was written elsewhere.
final class FollowerLooks: Sendable {
    private let announced = Locked<[RegisterHistory.Access]>([])
    private let looks = Locked<[RegisterHistory.Access]>([])

    /// Notes a save of which followers were notified.
    func announce(_ access: RegisterHistory.Access) { announced.withLock { $0.append(access) } }

    /// Notes what a follower has shown.
    func look(_ access: RegisterHistory.Access) { looks.withLock { $0.append(access) } }

    /// The looks that show something older than what was announced, among all writes.
    func contradictions(_ writes: [RegisterHistory.Access]) -> [String] {
        let announced = announced.withLock { $0 }
        let all = writes + [RegisterHistory.Access(value: 0, start: -2, end: -1)]
        return looks.withLock { $0 }.compactMap { look in
            guard let source = all.first(where: { $0.value == look.value }) else {
                return "a follower shows \(look.value), which nothing has written"
            }
            let newer = announced.first { source.end < $0.start && $0.end < look.start }
            return newer.map { "a follower shows \(look.value) after \($0.value) was saved" }
        }
    }
}
