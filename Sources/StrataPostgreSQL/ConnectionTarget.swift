import Foundation

/// The address of a database and the way to connect to it, from a URL without secrets.
package struct ConnectionTarget: Sendable, Hashable {
    /// The URL as libpq takes it.
    package let url: String
    /// The schema that the store's tables are in.
    package let schema: String
    /// Whether statements are prepared and kept.
    package let preparesStatements: Bool
    /// Whether a pooler gives each transaction to another session of the server; `nil` if that has to be found out.
    package let isPooled: Bool?
    /// Whether libpq gets the setting to trust only a verified certificate.
    package let verifiesServer: Bool
    /// Whether the URL or the environment says how the server is verified.
    let saysHowToVerify: Bool
    /// Whether the servers that the URL names follow another one.
    private let isFollower: Bool
    /// The name of the database in messages.
    package let place: String
    /// The hosts and the port, which are the same for all databases of a server.
    package let server: String
    /// Whether the URL names several hosts, one of which may replace another.
    let namesSeveralHosts: Bool
    /// Whether the hosts are named in a service file or in the environment, and not in the URL; there may be several.
    let findsHostsElsewhere: Bool

    /// The schema if a URL names none.
    package static let defaultSchema = "strata"

    /// Takes a URL apart.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - given: The schema, which replaces that of the URL; `nil` for the one in the URL.
    ///   - isFollower: Whether the URL leads to replicas.
    /// - Throws: ``PostgreSQLError`` for another scheme, for a password in the URL, and for an invalid name of a
    ///   schema.
    package init(_ url: URL, schema given: String? = nil, isFollower: Bool = false) throws(PostgreSQLError) {
        self.isFollower = isFollower
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            parts.scheme == "postgresql" || parts.scheme == "postgres"
        else { throw PostgreSQLError(.misuse, "the URL of a PostgreSQL store begins with postgresql://") }
        var items = parts.queryItems ?? []
        guard parts.password == nil, !items.contains(where: { ["password", "sslpassword"].contains($0.name) }) else {
            throw PostgreSQLError(
                .misuse,
                "the URL has a password, which would be printed and logged; put it into a password file (PGPASSFILE), a service file, or PGPASSWORD"
            )
        }
        func removeItem(_ name: String) -> String? {
            let value = items.last { $0.name == name }?.value
            items.removeAll { $0.name == name }
            return value
        }
        let named = removeItem("schema")
        let schema = given ?? named ?? Self.defaultSchema
        guard !schema.isEmpty, schema.utf8.count <= 63, !schema.contains("\0"), !schema.hasPrefix("pg_") else {
            throw PostgreSQLError(.misuse, "the schema must have a name of 1 to 63 bytes that does not begin with pg_")
        }
        self.schema = schema
        preparesStatements = removeItem("prepare").map { $0 != "0" && $0 != "false" } ?? true
        switch removeItem("pooler") {
        case nil: isPooled = nil
        case "transaction": isPooled = true
        case "session", "none": isPooled = false
        default: throw PostgreSQLError(.misuse, "the pooler in the URL must be transaction, session or none")
        }
        let hosts = (items.last { $0.name == "host" }?.value ?? parts.host ?? "")
            .split(separator: ",").map(String.init)
        namesSeveralHosts = hosts.count > 1
        let environment = ProcessInfo.processInfo.environment
        let namesHost = !hosts.isEmpty || items.contains { $0.name == "hostaddr" }
        findsHostsElsewhere =
            !namesHost
            && (items.contains { $0.name == "service" } || environment["PGSERVICE"] != nil
                || ["PGHOST", "PGHOSTADDR"].contains { environment[$0]?.contains(",") == true })
        saysHowToVerify = items.contains { $0.name == "sslmode" } || environment["PGSSLMODE"] != nil
        verifiesServer = !hosts.allSatisfy(Self.isNear) && !saysHowToVerify
        parts.queryItems = items.isEmpty ? nil : items
        self.url = parts.string ?? ""
        let user = parts.user.map { "\($0)@" } ?? ""
        parts.query = nil
        parts.user = nil
        let host = hosts.joined(separator: ",")
        let port = parts.port.map { ":\($0)" } ?? ""
        let otherPort = items.last { $0.name == "port" }?.value
        let otherHost = items.last { ["hostaddr", "service"].contains($0.name) }?.value
        server = [host + port, otherPort, otherHost].compactMap { $0 }.joined(separator: " ")
        // A slash separates the name of the database from the host, or from the folder of a socket.
        let database = items.last { $0.name == "dbname" }?.value ?? parts.path
        let path = database.isEmpty || database.hasPrefix("/") ? database : "/" + database
        place =
            host.hasPrefix("/")
            ? "postgresql://\(user)\(port)\(path)?host=\(host)&schema=\(schema)"
            : "postgresql://\(user)\(host)\(port)\(path)?schema=\(schema)"
    }

    private static let loopback: Set<String> = ["localhost", "127.0.0.1", "::1", "[::1]"]

    /// Whether a host, or an address, is this machine.
    static func isNear(_ host: String) -> Bool {
        host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") || loopback.contains(host)
    }

    /// The parameter that chooses one of several hosts by its role.
    static let role = "target_session_attrs"
    /// The role that is wanted by default, since all but one of several servers are replicas.
    var wantedRole: String { isFollower ? "standby" : "read-write" }

    /// The parameters for libpq, in their order; later ones override earlier ones.
    var parameters: [(String, String)] {
        var parameters = [
            // Messages about blocked sessions show this name to others. The URL or PGAPPNAME may give a better one.
            ("fallback_application_name", ProcessInfo.processInfo.processName),
            // An idle session notices that the machine of the server is gone only if the system probes it. Without
            // these settings it does so after two hours.
            ("keepalives_idle", "60"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
        ]
        if namesSeveralHosts { parameters.append((Self.role, wantedRole)) }
        if verifiesServer { parameters.append(("sslmode", "verify-full")) }
        parameters.append(("dbname", url))
        // This overrides the URL, because all texts are written in UTF-8.
        parameters.append(("client_encoding", "UTF8"))
        return parameters
    }

    /// What two targets have in common whose sessions can serve both: everything except the schema.
    struct Settings: Hashable, Sendable {
        fileprivate let url: String
        fileprivate let preparesStatements: Bool
        fileprivate let isPooled: Bool?
        fileprivate let verifiesServer: Bool
        fileprivate let isFollower: Bool
    }

    var settings: Settings {
        Settings(
            url: url,
            preparesStatements: preparesStatements,
            isPooled: isPooled,
            verifiesServer: verifiesServer,
            isFollower: isFollower
        )
    }

    /// The name of the schema as it is written in a statement.
    package var quotedSchema: String { "\"" + schema.replacing("\"", with: "\"\"") + "\"" }
}
