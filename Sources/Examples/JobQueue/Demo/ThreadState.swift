import Foundation

/// What a thread of a process is doing, as Linux tells it: a letter, such as `R` for one that runs.
struct ThreadState: Equatable {
    let letter: Character

    /// Whether the thread does nothing until it is told to go on: it is stopped, or at its end.
    var standsStill: Bool { "TtZX".contains(letter) }

    /// The state in the text of a file `stat`, such as `4711 (name) T 4700 …`, where a name may have anything in it.
    init?(stat text: String) {
        guard let name = text.lastIndex(of: ")"), let letter = text[name...].dropFirst(2).first else { return nil }
        self.letter = letter
    }

    /// The states of all threads of a process; nil if there is no such process, or no system that tells.
    static func all(of process: Int32) -> [ThreadState]? {
        let folder = "/proc/\(process)/task"
        guard let threads = try? FileManager.default.contentsOfDirectory(atPath: folder) else { return nil }
        // A thread that has ended meanwhile has no file.
        return threads.compactMap { thread in
            (try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)).flatMap(ThreadState.init(stat:))
        }
    }
}
