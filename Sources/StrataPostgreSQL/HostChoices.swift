import CStrataPostgreSQL

/// The hosts of a target that has several, one by one.
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
    /// - Returns: One choice without anything if there are not several hosts.
    /// - Throws: ``PostgreSQLError`` if libpq does not find out which hosts there are.
    static func of(_ target: ConnectionTarget) throws(PostgreSQLError) -> [[(String, String)]] {
        // A service file may name others than the last time.
        guard target.findsHostsElsewhere else { return of(settings(target.url)) }
        return of(try Connection.settings(of: target), orElse: target.wantedRole)
    }

    /// - Parameters:
    ///   - settings: What is known of the target.
    ///   - role: Which of several hosts is wanted if the settings do not say so.
    /// - Returns: The choices.
    private static func of(_ settings: [String: String], orElse role: String? = nil) -> [[(String, String)]] {
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
        func choosing(_ role: String) -> [[(String, String)]] {
            choices.map { $0 + [(ConnectionTarget.role, role)] }
        }
        let said = settings[ConnectionTarget.role]
        if said == "prefer-standby" { return choosing("standby") + choosing("any") }
        // libpq's own default counts as nothing said.
        if let role, said == nil || said == "any" { return ordered(choosing(role)) }
        return ordered(choices)
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

extension ConnectionTarget {
    /// Whether there are several hosts, one of which takes the place of another.
    ///
    /// Looked up anew each time if they are not in the URL.
    var hasSeveralHosts: Bool {
        guard findsHostsElsewhere else { return namesSeveralHosts }
        return ((try? HostChoices.of(self)) ?? []).count > 1
    }
}
