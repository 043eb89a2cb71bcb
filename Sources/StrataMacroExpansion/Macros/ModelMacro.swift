/// `@Model`: the backing of a class's values, its schema, and its conformance.
///
/// The names that the expansion adds are Apple's, because initialisers written by hand use them.
enum ModelMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            switch request.role {
            case "member":
                let declaration = try ModelDeclaration(reading: request.declaration)
                return Expansion(source: try members(of: declaration), diagnostics: warnings(about: declaration))
            case "memberAttribute": return try memberAttribute(request)
            case "extension": return Expansion(source: conformance(request))
            default: throw Diagnostic("@Model cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
        } catch {
            // Each role reads the same declaration, but only one of them reports.
            return Expansion(
                source: request.role == "member" ? nil : "",
                diagnostics: request.role == "member" ? [error] : []
            )
        }
    }

    // MARK: - Members

    /// The macro's accessors take the place of observers, as they do with Apple's.
    private static func warnings(about declaration: ModelDeclaration) -> [Diagnostic] {
        declaration.properties.filter(\.hasObservers).map { property in
            Diagnostic(
                "The observers of '\(property.bareName)' never run, because @Model writes its accessors. "
                    + "Mark it with @Transient, or observe a computed property that sets it.",
                at: property.keywordRange,
                isWarning: true
            )
        }
    }

    private static func members(of declaration: ModelDeclaration) throws(Diagnostic) -> String {
        for property in declaration.properties where property.isConstant && property.initialValue != nil {
            throw Diagnostic(
                "@Model cannot read '\(property.bareName)' back from a store, because a constant keeps its initial value.",
                at: property.keywordRange,
                fixIt: .init(
                    message: "replace 'let' with 'private(set) var'",
                    range: property.keywordRange,
                    replacement: "private(set) var"
                )
            )
        }
        let name = declaration.name
        let required = declaration.isFinal ? "" : "required "
        return """
            @SwiftData.Transient
            private var _$backingData: any SwiftData.BackingData<\(name)> = \(name).createBackingData()

            public var persistentBackingData: any SwiftData.BackingData<\(name)> {
                @storageRestrictions(initializes: _$backingData)
                init(initialValue) {
                    _$backingData = initialValue
                }
                get {
                    _$backingData
                }
                set {
                    _$backingData = newValue
                }
            }

            \(metadata(of: declaration))

            public \(required)init(backingData: any SwiftData.BackingData<\(name)>) {
            \(initialisations(of: declaration))
                self.persistentBackingData = backingData
            }

            @SwiftData.Transient
            private let _$observationRegistrar = Observation.ObservationRegistrar()

            internal nonisolated func access<_M>(keyPath: KeyPath<\(name), _M>) {
                _$observationRegistrar.access(self, keyPath: keyPath)
            }

            internal nonisolated func withMutation<_M, _R>(keyPath: KeyPath<\(name), _M>, _ mutation: () throws -> _R) rethrows -> _R {
                try _$observationRegistrar.withMutation(of: self, keyPath: keyPath, mutation)
            }

            struct _SwiftDataNoType {
            }
            """
    }

    private static func initialisations(of declaration: ModelDeclaration) -> String {
        declaration.members.compactMap { member in
            switch member {
            case .property(let property):
                property.isConstant
                    ? "    \(property.name) = backingData.getValue(forKey: \\.\(property.name))"
                    : "    _\(property.bareName) = _SwiftDataNoType()"
            case .condition(let line): line
            case .constraint: nil
            }
        }.joined(separator: "\n")
    }

    /// The schema, with one statement for each property: the type checker's work grows with the size of a statement.
    private static func metadata(of declaration: ModelDeclaration) -> String {
        var lines = [
            "public static var schemaMetadata: [SwiftData.Schema.PropertyMetadata] {",
            "    var metadata: [SwiftData.Schema.PropertyMetadata] = []",
        ]
        for member in declaration.members {
            switch member {
            case .condition(let line): lines.append(line)
            case .property(let property): lines.append(entry(of: property, in: declaration.name))
            case .constraint(let macro, let arguments):
                let generic = arguments.hasPrefix("<") ? "" : "<\(declaration.name)>"
                lines.append(
                    "    metadata.append(SwiftData.Schema.PropertyMetadata(name: \"\", keypath: \\\(declaration.name).self, "
                        + "defaultValue: nil, metadata: SwiftData.Schema.\(macro)\(generic)\(arguments)))"
                )
            }
        }
        lines += ["    return metadata", "}"]
        return lines.joined(separator: "\n")
    }

    private static func entry(of property: ModelProperty, in name: String) -> String {
        let value = property.initialValue.map { value in
            // An `if` or `switch` is an expression in a closure, but not in parentheses.
            let isStatement = ["if ", "switch "].contains { value.hasPrefix($0) }
            let expression = isStatement ? "{ \(value) }()" : value
            return property.type.map { "(\(expression)) as \($0.source)" } ?? expression
        }
        let described = ["Attribute", "Relationship"].first { property.attributes[$0] != nil }
        let metadata = described.map { "SwiftData.Schema.\($0)(\(property.attributes[$0] ?? ""))" }
        return "    metadata.append(SwiftData.Schema.PropertyMetadata(name: \"\(property.bareName)\", "
            + "keypath: \\\(name).\(property.name), defaultValue: \(value ?? "nil"), metadata: \(metadata ?? "nil")))"
    }

    // MARK: - Attributes of members

    private static func memberAttribute(_ request: ExpansionRequest) throws(Diagnostic) -> Expansion {
        var cursor = Cursor(request.declaration)
        guard let property = ModelProperty(reading: &cursor), property.isPersisted, !property.isConstant,
            property.attributes["_PersistedProperty"] == nil
        else { return Expansion(source: "") }
        let isTransformable = property.attributes["Attribute"]?.contains(".transformable") == true
        return Expansion(
            source: isTransformable ? "@SwiftData._TransformablePersistedProperty" : "@SwiftData._PersistedProperty"
        )
    }

    // MARK: - Conformance

    private static func conformance(_ request: ExpansionRequest) -> String {
        guard let type = request.extendedType else { return "" }
        return """
            extension \(type): SwiftData.PersistentModel, Observation.Observable {
            }

            @available(*, unavailable, message: "PersistentModels are not Sendable, use the ModelContext's actor or the persistentModelID")
            extension \(type): Sendable {
            }
            """
    }
}

/// `@_PersistedProperty`: the accessors of a property whose value is in the backing of its object.
///
/// `@Model` puts it before each stored property.
enum PersistedPropertyMacro {
    static func expand(_ request: ExpansionRequest, transformable: Bool) -> Expansion {
        var cursor = Cursor(request.declaration)
        guard let property = ModelProperty(reading: &cursor) else {
            return Expansion(diagnostics: [Diagnostic("@Model does not understand this property.", at: cursor.range)])
        }
        let name = property.name
        switch request.role {
        case "peer":
            return Expansion(source: "@SwiftData.Transient\nprivate var _\(property.bareName): _SwiftDataNoType")
        case "accessor":
            let (get, set) =
                transformable ? ("getTransformableValue", "setTransformableValue") : ("getValue", "setValue")
            return Expansion(
                source: """
                    @storageRestrictions(accesses: _$backingData, initializes: _\(property.bareName))
                    init(initialValue) {
                        _$backingData.\(set)(forKey: \\.\(name), to: initialValue)
                        _\(property.bareName) = _SwiftDataNoType()
                    }
                    get {
                        _$observationRegistrar.access(self, keyPath: \\.\(name))
                        return self.\(get)(forKey: \\.\(name))
                    }
                    set {
                        _$observationRegistrar.withMutation(of: self, keyPath: \\.\(name)) {
                            self.\(set)(forKey: \\.\(name), to: newValue)
                        }
                    }
                    """
            )
        default: return Expansion(diagnostics: [Diagnostic("The role '\(request.role)' is unknown.", at: 0..<0)])
        }
    }
}

/// `@ModelActor`: an actor with a separate context.
enum ModelActorMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        switch request.role {
        case "member":
            var cursor = Cursor(request.declaration)
            guard let header = cursor.readHeader(), header.keyword.text == "actor" else {
                return Expansion(
                    diagnostics: [
                        Diagnostic("@ModelActor can only stand on an actor.", at: Cursor(request.declaration).range)
                    ]
                )
            }
            let access =
                header.modifiers.map(\.text).first { ["public", "package"].contains($0) }.map { "\($0) " } ?? ""
            return Expansion(
                source: """
                    \(access)nonisolated let modelExecutor: any SwiftData.ModelExecutor

                    \(access)nonisolated let modelContainer: SwiftData.ModelContainer

                    \(access)init(modelContainer: SwiftData.ModelContainer) {
                        let modelContext = SwiftData.ModelContext(modelContainer)
                        self.modelExecutor = SwiftData.DefaultSerialModelExecutor(modelContext: modelContext)
                        self.modelContainer = modelContainer
                    }
                    """
            )
        default:
            guard let type = request.extendedType else { return Expansion(source: "") }
            return Expansion(source: "extension \(type): SwiftData.ModelActor {\n}")
        }
    }
}
