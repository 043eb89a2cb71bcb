/// `@ManagedAccessor`: the body of a method that changes a to-many relationship.
///
/// Xcode generates such methods.
enum ManagedAccessorMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            let accessor = try AccessorDeclaration(reading: request.declaration)
            guard request.role == "body" else {
                throw Diagnostic("@ManagedAccessor cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
            return Expansion(source: "{\n    \(accessor.call)\n}")
        } catch {
            return Expansion(diagnostics: [error])
        }
    }
}
