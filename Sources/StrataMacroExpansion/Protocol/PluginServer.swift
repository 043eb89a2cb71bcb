/// Answers the compiler's messages, one at a time and in order, until the compiler closes the stream.
///
/// Every message is answered, even if it is broken or unknown: the compiler waits for each reply.
package struct PluginServer {
    private let transport: Transport

    package init(transport: Transport) { self.transport = transport }

    package func run() throws(Transport.Failure) {
        while let message = try transport.receive() {
            try transport.send(Self.reply(to: message))
        }
    }

    /// The reply to one message.
    static func reply(to message: [UInt8]) -> String {
        let json: JSON
        do {
            json = try JSON(parsing: message)
        } catch {
            return refusal("The compiler sent a message that is not JSON (byte \(error.offset)).", at: nil)
        }
        if json["getCapability"] != nil {
            return #"{"getCapabilityResult":{"capability":{"protocolVersion":7}}}"#
        }
        if let body = json["expandAttachedMacro"] {
            guard let request = ExpansionRequest(body) else {
                return refusal("The compiler's request lacks a macro, a role or a declaration.", at: body["declSyntax"])
            }
            return encode(expand(request), at: request.location)
        }
        if let body = json["expandFreestandingMacro"] {
            // `#Unique` and `#Index` add nothing themselves: `@Model` reads them.
            guard ["UniqueMacro", "IndexMacro"].contains(body["macro"]?["typeName"]?.string) else {
                return refusal("Strata has no such macro that stands on its own.", at: body["syntax"])
            }
            return encode(Expansion(source: ""), at: SourceLocation(body["syntax"]?["location"]))
        }
        if json["loadPluginLibrary"] != nil {
            return #"{"loadPluginLibraryResult":{"loaded":false,"diagnostics":[]}}"#
        }
        return refusal("The compiler sent a message that this version of Strata does not know.", at: nil)
    }

    private static func expand(_ request: ExpansionRequest) -> Expansion {
        switch request.macro {
        case "ManagedMacro": ManagedMacro.expand(request)
        case "ManagedObjectMacro": ManagedObjectMacro.expand(request)
        case "ManagedCompositeMacro": ManagedCompositeMacro.expand(request)
        case "ManagedScalarAccessMacro": ManagedScalarAccessMacro.expand(request)
        case "ManagedAccessorMacro": ManagedAccessorMacro.expand(request)
        case "ModelMacro": ModelMacro.expand(request)
        case "PersistedPropertyMacro": PersistedPropertyMacro.expand(request, transformable: false)
        case "TransformablePersistedPropertyMacro": PersistedPropertyMacro.expand(request, transformable: true)
        // They add nothing themselves: `@Model` reads them.
        case "AttributeMacro", "RelationshipMacro", "TransientMacro": Expansion(source: "")
        case "ModelActorMacro": ModelActorMacro.expand(request)
        default: Expansion(diagnostics: [Diagnostic("Strata has no macro '\(request.macro)'.", at: 0..<0)])
        }
    }

    // MARK: - Encoding

    private static func refusal(_ message: String, at syntax: JSON?) -> String {
        encode(Expansion(diagnostics: [Diagnostic(message, at: 0..<0)]), at: SourceLocation(syntax?["location"]))
    }

    private static func encode(_ expansion: Expansion, at location: SourceLocation) -> String {
        let source = expansion.source.map(JSON.quoted) ?? "null"
        let diagnostics = expansion.diagnostics.map { $0.encoded(at: location) }.joined(separator: ",")
        return #"{"expandMacroResult":{"expandedSource":\#(source),"diagnostics":[\#(diagnostics)]}}"#
    }
}
