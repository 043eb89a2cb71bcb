import CStrataPostgreSQL
import Foundation
import StrataLocks

/// The hosts of a target that has several, to be tried one by one.
///
/// Any thread may use it. All stores of the process share what is known about silent hosts.
enum HostChoices {
    /// The time until which silent hosts are tried last, by their libpq parameters.
    private static let silent = Locked<[String: ContinuousClock.Instant]>([:])
    private static let rest = Duration.seconds(60)

    /// Adds a host that was silent, so that other connections do not wait for it first.
    static func addSilent(_ choice: [(String, String)]) {
        guard !choice.isEmpty else { return }
        silent.withLock { $0[name(choice)] = .now + rest }
    }

    private static func name(_ choice: [(String, String)]) -> String {
        choice.map { "\($0)=\($1)" }.joined(separator: " ")
    }

    /// The choices, with the silent ones at the end.
    private static func ordered(_ choices: [[(String, String)]]) -> [[(String, String)]] {
        let resting = silent.withLock { silent in
            silent = silent.filter { $0.value > .now }
            return Set(silent.keys)
        }
        guard !resting.isEmpty else { return choices }
        return choices.filter { !resting.contains(name($0)) } + choices.filter { resting.contains(name($0)) }
    }

    /// The parameters for libpq beside the URL, for one host after the other.
    ///
    /// - Parameters:
    ///   - target: The target.
    ///   - resolve: Returns the addresses of a name.
    /// - Returns: One choice per host or address; one empty choice if there is only one host with one address.
    /// - Throws: ``PostgreSQLError`` if libpq does not find out the hosts.
    static func of(
        _ target: ConnectionTarget,
        resolve: (String) -> [String] = addresses
    ) throws(PostgreSQLError) -> [[(String, String)]] {
        // A service file may name other hosts than the last time.
        guard target.findsHostsElsewhere else { return of(settings(target.url), resolve: resolve) }
        return of(try Connection.settings(of: target), orElse: target.wantedRole, resolve: resolve)
    }

    /// The addresses of a name; none if the name is unknown, because libpq reports that itself.
    private static func addresses(_ name: String) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = Int32(AI_ADDRCONFIG)
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &first) == 0 else { return [] }
        defer { freeaddrinfo(first) }
        var addresses: [String] = []
        var place = first
        while let found = place?.pointee {
            place = found.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let size = socklen_t(text.count)
            guard getnameinfo(found.ai_addr, found.ai_addrlen, &text, size, nil, 0, NI_NUMERICHOST) == 0 else {
                continue
            }
            let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if !addresses.contains(address) { addresses.append(address) }
        }
        return addresses
    }

    /// The choices for settings.
    ///
    /// - Parameters:
    ///   - settings: The known settings of the target.
    ///   - role: The role that is wanted of several hosts if the settings name none.
    ///   - resolve: Returns the addresses of a name.
    /// - Returns: The choices.
    private static func of(
        _ settings: [String: String],
        orElse role: String? = nil,
        resolve: (String) -> [String]
    ) -> [[(String, String)]] {
        let hosts = list(settings["host"])
        let addresses = list(settings["hostaddr"])
        let ports = list(settings["port"])
        let count = max(hosts.count, addresses.count)
        guard count <= 1 || ports.count <= 1 || ports.count == count else { return [[]] }
        let choices = (0..<count).flatMap { index in
            var choice: [(String, String)] = []
            func add(_ name: String, _ values: [String]) {
                guard let value = values.count == count ? values[index] : values.first else { return }
                choice.append((name, value))
            }
            add("host", hosts)
            add("hostaddr", addresses)
            add("port", ports)
            // libpq never goes on to the next address of a name if the first one is silent.
            guard addresses.isEmpty, !ConnectionTarget.isNear(hosts[index]) else { return [choice] }
            let found = resolve(hosts[index])
            return found.count > 1 ? found.map { choice + [("hostaddr", $0)] } : [choice]
        }
        guard choices.count > 1 else { return [[]] }
        func choosing(_ role: String) -> [[(String, String)]] {
            choices.map { $0 + [(ConnectionTarget.role, role)] }
        }
        let said = settings[ConnectionTarget.role]
        if said == "prefer-standby" { return choosing("standby") + choosing("any") }
        // libpq's own default counts as no setting.
        if count > 1, let role, said == nil || said == "any" { return ordered(choosing(role)) }
        return ordered(choices)
    }

    private static func list(_ text: String?) -> [String] {
        text.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }

    /// The settings of a URL, without those of the environment.
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
    /// Whether there are several hosts, one of which may replace another.
    ///
    /// If they are not in the URL, then they are looked up anew each time.
    var hasSeveralHosts: Bool {
        guard findsHostsElsewhere else { return namesSeveralHosts }
        // Several addresses of one name lead to one host.
        return ((try? HostChoices.of(self) { _ in [] }) ?? []).count > 1
    }
}
