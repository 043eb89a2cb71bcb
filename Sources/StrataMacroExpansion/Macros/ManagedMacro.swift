/// `@Managed`: a property whose value is in the object's row.
///
/// The peer is a constant of the class that remembers the property's place in an entity's layout; the accessors pass it
/// to the object. The peer contains the type as declared, so that the runtime's overloads are chosen by it.
enum ManagedMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            try checkSurroundings(request)
            var cursor = Cursor(request.declaration)
            let property = try PropertyDeclaration(reading: &cursor)
            switch request.role {
            case "accessor": return Expansion(source: accessors(of: property))
            case "peer": return Expansion(source: peer(of: property))
            default:
                throw Diagnostic("@Managed cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
        } catch {
            // Both roles read the same declaration, but only one of them reports.
            return Expansion(diagnostics: request.role == "peer" ? [] : [error])
        }
    }

    private static func accessors(of property: PropertyDeclaration) -> String {
        let (get, set) =
            property.has("codable")
            ? ("managedCodableValue", "setManagedCodableValue")
            : property.has("fetched") ? ("managedFetchedValue", "") : ("managedValue", "setManagedValue")
        let getter = """
            get {
                \(get)(Self.\(property.peerName))
            }
            """
        // A property that the store computes, or that a query returns, cannot be set.
        guard !property.has("derived"), !property.has("fetched") else { return getter }
        return """
            \(getter)
            set {
                \(set)(newValue, Self.\(property.peerName))
            }
            """
    }

    private static func peer(of property: PropertyDeclaration) -> String {
        "nonisolated private static let \(property.peerName) = "
            + "CoreData.ManagedProperty<\(property.type.source)>(\(property.modelName))"
    }

    private static func checkSurroundings(_ request: ExpansionRequest) throws(Diagnostic) {
        let headers = request.surroundings.map { source in
            var cursor = Cursor(source)
            return cursor.readHeader()
        }
        // The place is the first token, so that the error is not reported in the white space before the declaration.
        let place = Cursor(request.declaration).range
        guard let inner = headers.first??.keyword.text, inner == "class" || inner == "extension" else {
            throw Diagnostic("@Managed can only stand on a property of a subclass of NSManagedObject.", at: place)
        }
        guard !headers.contains(where: { $0?.isGeneric == true }) else {
            throw Diagnostic(
                "@Managed cannot be used inside a generic declaration: an entity has one class.",
                at: place
            )
        }
    }
}
