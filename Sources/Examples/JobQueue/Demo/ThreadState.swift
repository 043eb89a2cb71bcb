import Foundation

/// The state of a thread of a process on Linux: a letter, such as `R` for a running one.
struct ThreadState: Equatable {
    let letter: Character

    /// Whether the thread does nothing until it is continued: it is stopped, or at its end.
    var standsStill: Bool { "TtZX".contains(letter) }

    /// Reads the state in the text of a file `stat`, such as `4711 (name) T 4700 …`.
    ///
    /// The name may contain any characters.
    init?(stat text: String) {
        guard let name = text.lastIndex(of: ")"), let letter = text[name...].dropFirst(2).first else { return nil }
        self.letter = letter
    }

    /// The states of all threads of a process; nil if there is no such process, or if the system does not report them.
    static func all(of process: Int32) -> [ThreadState]? {
        let folder = "/proc/\(process)/task"
        guard let threads = try? FileManager.default.contentsOfDirectory(atPath: folder) else { return nil }
        // If a thread has ended meanwhile, it has no file.
        return threads.compactMap { thread in
            (try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)).flatMap(ThreadState.init(stat:))
        }
    }
}
