import CStrataPostgreSQL

/// The hosts of a URL that names several, one by one.
///
/// Any thread may use it. What is known of silent hosts is shared by all stores of the process.
enum HostChoices {
    /// Until when hosts come last that were silent, by what libpq is told of them.
    private static let silent = Mutex<[String: ContinuousClock.Instant]>([:])
    private static let rest = Duration.seconds(60)

    /// Notes that a host was silent, so that not everybody waits for it.
    static func noteSilence(_ choice: [(String, String)]) {
        guard !choice.isEmpty else { return }
        silent.withLock { $0[name(choice)] = .now + rest }
    }

    private static func name(_ choice: [(String, String)]) -> String {
        choice.map { "\($0)=\($1)" }.joined(separator: " ")
    }

    /// The choices with those last that were silent.
    private static func ordered(_ choices: [[(String, String)]]) -> [[(String, String)]] {
        let resting = silent.withLock { silent in
            silent = silent.filter { $0.value > .now }
            return Set(silent.keys)
        }
        guard !resting.isEmpty else { return choices }
        return choices.filter { !resting.contains(name($0)) } + choices.filter { resting.contains(name($0)) }
    }

    /// What libpq is told beside the URL, for one host after the other.
    ///
    /// - Returns: One choice without anything if there are not several hosts, or if libpq finds them elsewhere, as in a service file.
    static func of(_ target: ConnectionTarget) -> [[(String, String)]] {
        let settings = settings(target.url)
        let hosts = list(settings["host"])
        let addresses = list(settings["hostaddr"])
        let ports = list(settings["port"])
        let count = max(hosts.count, addresses.count)
        guard count > 1, ports.count <= 1 || ports.count == count else { return [[]] }
        let choices = (0..<count).map { index in
            var choice: [(String, String)] = []
            func add(_ name: String, _ values: [String]) {
                guard let value = values.count == count ? values[index] : values.first else { return }
                choice.append((name, value))
            }
            add("host", hosts)
            add("hostaddr", addresses)
            add("port", ports)
            return choice
        }
        let attribute = "target_session_attrs"
        guard settings[attribute] == "prefer-standby" else { return ordered(choices) }
        return ordered(choices.map { $0 + [(attribute, "standby")] } + choices.map { $0 + [(attribute, "any")] })
    }

    private static func list(_ text: String?) -> [String] {
        text.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }

    /// What a URL says, without what the environment adds.
    private static func settings(_ url: String) -> [String: String] {
        guard let options = PQconninfoParse(url, nil) else { return [:] }
        defer { PQconninfoFree(options) }
        var settings: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { settings[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return settings
    }
}
